"""The numbers of the model card, each printed by one command.

    python3 -m training.evaluate perplexity --corpus CORPUS --model MODEL [--gguf FILE]
    python3 -m training.evaluate stories --corpus CORPUS --model MODEL --teacher SmolLM2.gguf [--gguf FILE]
    python3 -m training.evaluate stories --corpus CORPUS --engine MILLRACE --gguf FILE --teacher SmolLM2.gguf
    python3 -m training.evaluate tools --model MODEL [--gguf FILE]
    python3 -m training.evaluate samples --model MODEL [--gguf FILE]

With --gguf the weights are those of that file, rounded as it has them. With --engine the stories are told by the
program as it would tell them to a user: its own sampling, a temperature and a penalty against repetition.
"""
import argparse
import collections
import json
import math
import pathlib
import subprocess

import numpy as np
import torch

from training import corpus, grammar, tools
from training.export import load, read_tokenizer
from training.filters import MOST_REPEATS, ends_in_sentence, most_repeats
from training.model import Model
from training.tokenizer import chat_text, read_records
from training.train import mean_loss, read_rows

LENGTH = 2048
COUNT = 200
REFERENCES = 50  # stories of the corpus that the model's are compared with
MOST_NEW = 400
AT_ONCE = 50
STORY_TEMPERATURE, STORY_PENALTY = 0.7, 1.1
STORY_SEED, TOOL_SEED, SAMPLE_PROMPTS = (grammar.HELD_OUT + n for n in (100_000, 200_000, 150_000))
SAMPLE_SEED = 7


class Writer:
    """Samples from the model in float32, some texts at once, each with a random stream of its own."""

    def __init__(self, args):
        self.model, self.tokenizer = load(args.model, args.gguf), read_tokenizer(args.model)
        self.ends = [self.tokenizer.token_to_id(t) for t in ("<|im_end|>", "<|endoftext|>")]

    def write(self, prompts, seeds, temperature=0.0):
        """prompts: (messages, tools) each."""
        texts = [chat_text(*prompt, add_generation_prompt=True) for prompt in prompts]
        jobs = [Job(self.tokenizer.encode(text).ids, seed) for text, seed in zip(texts, seeds)]
        for i in range(0, len(jobs), AT_ONCE):
            self._write(jobs[i:i + AT_ONCE], temperature)
        return [self.tokenizer.decode(job.new, skip_special_tokens=False).strip() for job in jobs]

    @torch.no_grad()
    def _write(self, jobs, temperature):
        """All texts go on by one token at a time: a known one of a longer prompt, or a chosen one."""
        past = [[] for _ in self.model.model.layers]
        at = min(len(job.prompt) for job in jobs)
        tokens = torch.tensor([job.prompt[:at] for job in jobs])
        while not all(job.ended for job in jobs):
            logits = self.model(tokens, past)[:, -1]
            tokens = torch.tensor([[job.next(at, row, temperature, self.ends)] for job, row in zip(jobs, logits)])
            at += 1


class Job:
    def __init__(self, prompt, seed):
        self.prompt, self.new, self.ended = prompt, [], False
        self.generator = torch.Generator().manual_seed(seed)

    def next(self, at, logits, temperature, ends):
        """The token at a place, which is chosen after the prompt; after the end, any."""
        if at < len(self.prompt):
            return self.prompt[at]
        if self.ended:
            return ends[0]
        if temperature == 0:
            token = int(logits.argmax())
        else:
            token = int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=self.generator))
        self.ended = token in ends or len(self.new) == MOST_NEW
        if not self.ended:
            self.new.append(token)
        return token


class Engine:
    """`millrace chat`, one story at a time."""

    def __init__(self, args):
        self.command = [args.engine, "chat", "-m", args.gguf, "-n", MOST_NEW, "--temperature", STORY_TEMPERATURE,
                        "--repeat-penalty", STORY_PENALTY]

    def write(self, prompts, seeds):
        return [self._write(messages, seed) for (messages, _), seed in zip(prompts, seeds)]

    def _write(self, messages, seed):
        *before, question = (message["content"] for message in messages)
        system = ["--system", before[0]] if before else []
        command = [*self.command, *system, "--seed", seed, "-p", question]
        ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
        return ran.stdout.strip()


def perplexity(args):
    from training.ngram import KneserNey
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = read_rows(args.corpus / "held_out.bin", LENGTH)[:args.rows]
    torch.manual_seed(1)
    model = load(args.model, args.gguf)
    ours, untrained = (math.exp(mean_loss(m.to(device), rows, device, at_once=2))
                       for m in (model, Model(model.shape)))
    print(f"{rows[:, 1:].numel()} held-out tokens; perplexity: model {ours:.3f}, untrained {untrained:.0f}", flush=True)
    train, held_out = (np.fromfile(args.corpus / f"{s}.bin", dtype=np.uint16) for s in ("train", "held_out"))
    grams = KneserNey(train, model.shape.vocab_size).perplexity(held_out[:rows[:, 1:].numel() + 1])
    print(f"modified Kneser-Ney 5-gram of {len(train)} tokens: {grams:.3f}; "
          f"the model is {100 * (1 - ours / grams):.1f} % below the 5-gram")


def story_faults(texts, scores, most_perplexity):
    for text, score in zip(texts, scores):
        if not ends_in_sentence(text):
            yield "no end"
        elif most_repeats(text) > MOST_REPEATS:
            yield "repetition"
        else:
            yield "perplexity" if score > most_perplexity else None


def corpus_stories(path, count):
    """The first held-out stories of the corpus."""
    records = [r for r in read_records(path) if r["kind"] == "story"][:count]
    return [r["messages"][-1]["content"] for r in records]


def stories(args):
    """Prompts of seeds that the corpus does not have."""
    from training.teacher import Teacher
    teacher, seeds = Teacher(args.teacher, "cpu"), range(STORY_SEED, STORY_SEED + args.count)
    prompts = [(grammar.conversation("story", seed), None) for seed in seeds]
    texts = Engine(args).write(prompts, seeds) if args.engine else Writer(args).write(prompts, seeds, STORY_TEMPERATURE)
    score = lambda given: teacher.perplexity([t or "?" for t in given], tokens_at_once=4096)
    scores, middle = score(texts), np.median(score(corpus_stories(args.corpus / "held_out.jsonl.xz", REFERENCES)))
    faults = collections.Counter(story_faults(texts, scores, 2 * middle))
    print(f"{faults.pop(None, 0)} of {len(texts)} stories pass at temperature {STORY_TEMPERATURE}; "
          f"faults: {dict(faults)}")
    print(f"median perplexity under the teacher: stories {np.median(scores):.2f}, the corpus' {middle:.2f}; "
          f"median length {int(np.median([len(t.split()) for t in texts]))} words")


def tool_prompts(count):
    """Scenes whose tool names no training text has."""
    for i in range(count):
        scene = corpus.tool_scene(TOOL_SEED + i)
        definitions = [t["definition"] for t in scene["tools"]]
        if not all(tools.is_held_out_name(d["function"]["name"]) for d in definitions):
            raise ValueError("a name that may have been trained on")
        yield scene["scenes"][0], definitions


def tool_calls(args):
    scenes, faults, exact = list(tool_prompts(args.count)), collections.Counter(), 0
    prompts = [([{"role": "user", "content": scene["request"]}], definitions) for scene, definitions in scenes]
    for text, (scene, definitions) in zip(Writer(args).write(prompts, range(len(prompts))), scenes):
        why = tools.fault(text, definitions)
        faults[why] += 1
        if why is None:
            call = json.loads(text.partition("<tool_call>")[2].partition("</tool_call>")[0])
            exact += call == tools.call_message(scene["tool"])["function"]
        if args.show:
            print(json.dumps({"request": scene["request"], "answer": text, "fault": why}))
    print(f"{faults.pop(None, 0)} of {args.count} calls valid, {exact} as asked for; faults: {dict(faults)}")


def samples(args):
    prompts = [grammar.conversation("story", SAMPLE_PROMPTS + i) for i in range(args.count)]
    texts = Writer(args).write([(p, None) for p in prompts], range(SAMPLE_SEED, SAMPLE_SEED + args.count),
                               STORY_TEMPERATURE)
    for messages, text in zip(prompts, texts):
        print(f"**{messages[-1]['content']}**\n\n{text}\n")


COMMANDS = {"perplexity": perplexity, "stories": stories, "tools": tool_calls, "samples": samples}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--corpus", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--gguf", type=pathlib.Path)
    parser.add_argument("--engine", type=pathlib.Path)
    parser.add_argument("--teacher", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--rows", type=int, help="how many rows of held-out tokens; else all")
    parser.add_argument("--show", action="store_true", help="print every answer of `tools`")
    args = parser.parse_args()
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
