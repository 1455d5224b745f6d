"""A last phase in which the model learns from stories of its own.

    python3 -m training.polish --corpus CORPUS --teacher SmolLM2.gguf --model MODEL

So small a model turns in circles where its corpus only repeats itself now and then, and no text of the corpus shows
it its own mistakes. So, in each of a few rounds, it tells stories at the temperature they will be told at, to prompts
of seeds that neither the corpus nor the evaluation has. Stories that pass `story_fault` are learnt; in those that
repeat themselves, a token that completes four tokens in a row which the story had before is made less likely
(unlikelihood, -log(1 - p)). Rows of the corpus are learnt beside them, so that nothing else is lost. Two minutes on
one H200. MODEL's weights are replaced; the ones before stay as unpolished.safetensors, and the same command starts
from them.
"""
import argparse
import collections
import dataclasses
import json
import math
import pathlib
import re
import shutil
import time

import torch
import torch.nn.functional as F

from training import grammar
from training.export import UNPOLISHED, load, read_tokenizer, save_directory
from training.filters import ends_in_sentence, most_repeats
from training.teacher import Teacher
from training.tokenizer import chat_text, document
from training.train import read_rows, share_of_rate
from training.writer import Writer


@dataclasses.dataclass
class Recipe:
    rounds: int = 4
    stories: int = 4096  # told in a round
    steps: int = 16  # in a round
    learning_rate: float = 3e-4
    warm_up: int = 20
    good: int = 64  # stories in a batch
    looping: int = 32
    rows: int = 16  # of the corpus in a batch
    row_length: int = 2048
    longest: int = 512  # tokens of a story and its prompt
    seed: int = 3


TINY_RECIPE = Recipe(rounds=1, stories=4, steps=2, good=2, looping=2, rows=2, row_length=64)
TEMPERATURE = 0.7
FIRST_SEED = 500_000  # of the prompts; the corpus ends far below, what is held out starts far above
REPEAT = 4
LEAST_WORDS = 90  # shorter stories pass more easily: learnt, they would become shorter and shorter
MOST_REPEATS = 2
MOST_PERPLEXITY = 1.5  # times the corpus' median
DOUBLED = re.compile(r"\b(\w+),? \1\b", re.IGNORECASE)


def story_fault(seed, text, perplexity, middle):
    """Stricter than the check of the evaluation, so that what is learnt is better than what must pass."""
    if not ends_in_sentence(text):
        return "no end"
    if most_repeats(text) > MOST_REPEATS:
        return "repetition"
    if DOUBLED.search(text):
        return "doubled word"
    if len(text.split()) < LEAST_WORDS:
        return "short"
    if grammar.story_parts(grammar.rng_of("story", seed))["who"].split()[-1] not in text:
        return "not about the hero"
    return "perplexity" if perplexity > MOST_PERPLEXITY * middle else None


def repeats(tokens, start):
    """For each token, whether it completes REPEAT tokens in a row that were there before, from `start` on: an
    answer may repeat its prompt."""
    seen, flags = set(), [False] * start
    for end in range(start + 1, len(tokens) + 1):
        gram = tuple(tokens[max(start, end - REPEAT):end])
        flags.append(len(gram) == REPEAT and gram in seen)
        seen.add(gram)
    return flags


@dataclasses.dataclass
class Story:
    tokens: list
    signs: list  # for each token after the first: 1 to learn it, -1 to unlearn it, 0 for neither


def story_of(tokenizer, seed, text, good, longest):
    prompt = grammar.conversation("story", seed)
    told = document({"messages": prompt + [{"role": "assistant", "content": text}]})
    tokens = tokenizer.encode(told).ids[:longest + 1]
    answer = len(tokenizer.encode(chat_text(prompt, add_generation_prompt=True)).ids)
    if good:
        signs = [0] * answer + [1] * (len(tokens) - answer)
    else:
        signs = [-1 if flag else 0 for flag in repeats(tokens, answer)]
    return Story(tokens, signs[1:])


def padded(rows, length, device):
    return torch.tensor([row + [0] * (length - len(row)) for row in rows], device=device)


def story_loss(model, stories, longest, device):
    tokens = padded([s.tokens for s in stories], longest + 1, device)
    signs = padded([s.signs for s in stories], longest, device).flatten()
    losses = F.cross_entropy(model(tokens[:, :-1]).float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    unlike = -torch.log1p(-torch.exp(-losses).clamp(max=1 - 1e-4))
    return (losses * (signs == 1) + unlike * (signs == -1)).sum() / (signs != 0).sum().clamp(min=1)


class Polish:
    def __init__(self, args):
        self.recipe = TINY_RECIPE if args.tiny else Recipe()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(self.recipe.seed)
        torch.set_float32_matmul_precision("high")
        self.model, self.tokenizer = load(args.model).to(self.device), read_tokenizer(args.model)
        self.teacher = Teacher(args.teacher, self.device)
        report = json.loads((args.corpus / "report.json").read_text())
        self.middle = report["median perplexity under the teacher"].get("story", math.inf)  # --tiny has no story
        self.rows = read_rows(args.corpus / "train.bin", self.recipe.row_length)
        self.writer = Writer(self.model, self.tokenizer, self.device, at_once=2048)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.0)

    def tell(self, number):
        """The stories of a round: good ones, looping ones, and what was wrong with how many."""
        first = FIRST_SEED + number * self.recipe.stories
        seeds = range(first, first + self.recipe.stories)
        texts = self.writer.write([(grammar.conversation("story", s), None) for s in seeds], seeds, TEMPERATURE)
        scores = self.teacher.perplexity([text or "?" for text in texts])
        faults = [story_fault(*told, self.middle) for told in zip(seeds, texts, scores)]
        told = lambda fault: [story_of(self.tokenizer, seed, text, fault is None, self.recipe.longest)
                              for seed, text, why in zip(seeds, texts, faults) if why == fault]
        return told(None), told("repetition"), collections.Counter(filter(None, faults))

    def learn(self, step, good, looping):
        pick = lambda items, count: [items[i] for i in torch.randperm(len(items))[:count].tolist()]
        stories = pick(good, self.recipe.good) + pick(looping, self.recipe.looping)
        rows = self.rows[torch.randperm(len(self.rows))[:self.recipe.rows]].to(self.device).long()
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            ours = story_loss(self.model, stories, self.recipe.longest, self.device) if stories else 0.0
            loss = ours + self.model.loss(rows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        share = share_of_rate(step, self.recipe.rounds * self.recipe.steps, self.recipe.warm_up)
        self.optimizer.param_groups[0]["lr"] = self.recipe.learning_rate * share
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss.detach())

    def run(self):
        started = time.time()
        for number in range(self.recipe.rounds):
            good, looping, faults = self.tell(number)
            steps = range(number * self.recipe.steps, (number + 1) * self.recipe.steps)
            losses = [self.learn(step, good, looping) for step in steps]
            print(json.dumps({"round": number + 1, "good": len(good), "faults": faults,
                              "loss": round(sum(losses) / len(losses), 4),
                              "seconds": round(time.time() - started, 1)}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--teacher", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--tiny", action="store_true", help="two steps, for a test")
    args = parser.parse_args()
    weights, before = args.model / "model.safetensors", args.model / UNPOLISHED
    shutil.copy(*((before, weights) if before.exists() else (weights, before)))
    polish = Polish(args)
    polish.run()
    save_directory(polish.model, args.model)


if __name__ == "__main__":
    main()
