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
from training.filters import MOST_REPEATS, ends_in_sentence, most_repeats, word_grams
from training.model import Model
from training.tokenizer import read_records
from training.train import mean_loss, read_rows
from training.writer import MOST_NEW, Writer

LENGTH = 2048
COUNT = 200
REFERENCES = 50  # stories of the corpus that the model's are compared with
STORY_TEMPERATURE, STORY_PENALTY = 0.7, 1.1
STORY_SEED, TOOL_SEED, SAMPLE_PROMPTS = (grammar.HELD_OUT + n for n in (100_000, 200_000, 150_000))
SAMPLE_SEED = 7
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def writer(args):
    return Writer(load(args.model, args.gguf).to(DEVICE), read_tokenizer(args.model), DEVICE)


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
    rows = read_rows(args.corpus / "held_out.bin", LENGTH)[:args.rows]
    torch.manual_seed(1)
    model = load(args.model, args.gguf)
    ours, untrained = (math.exp(mean_loss(m.to(DEVICE), rows, DEVICE, at_once=2))
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


def variety(texts):
    """How many of all runs of five words are different ones."""
    grams = [gram for text in texts for gram in word_grams(text, 5)]
    return len(set(grams)) / max(1, len(grams))


def corpus_stories(path, count):
    """The first held-out stories of the corpus."""
    records = [r for r in read_records(path) if r["kind"] == "story"][:count]
    return [r["messages"][-1]["content"] for r in records]


def stories(args):
    """Prompts of seeds that the corpus does not have."""
    from training.teacher import Teacher
    teacher, seeds = Teacher(args.teacher, DEVICE), range(args.first_seed, args.first_seed + args.count)
    prompts = [(grammar.conversation("story", seed), None) for seed in seeds]
    texts = Engine(args).write(prompts, seeds) if args.engine else writer(args).write(prompts, seeds, STORY_TEMPERATURE)
    score = lambda given: teacher.perplexity([t or "?" for t in given], tokens_at_once=4096)
    scores, middle = score(texts), np.median(score(corpus_stories(args.corpus / "held_out.jsonl.xz", REFERENCES)))
    faults = collections.Counter(story_faults(texts, scores, 2 * middle))
    print(f"{faults.pop(None, 0)} of {len(texts)} stories pass at temperature {STORY_TEMPERATURE}; "
          f"faults: {dict(faults)}")
    print(f"median perplexity under the teacher: stories {np.median(scores):.2f}, the corpus' {middle:.2f}; "
          f"median length {int(np.median([len(t.split()) for t in texts]))} words")
    corpus_texts = corpus_stories(args.corpus / "held_out.jsonl.xz", args.count)
    print(f"of five words in a row, {100 * variety(texts):.0f} % are different; as many stories of the corpus: "
          f"{100 * variety(corpus_texts):.0f} %")


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
    for text, (scene, definitions) in zip(writer(args).write(prompts, range(len(prompts))), scenes):
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
    texts = writer(args).write([(p, None) for p in prompts], range(SAMPLE_SEED, SAMPLE_SEED + args.count),
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
    parser.add_argument("--first-seed", type=int, default=STORY_SEED, help="of the prompts of `stories`")
    parser.add_argument("--rows", type=int, help="how many rows of held-out tokens; else all")
    parser.add_argument("--show", action="store_true", help="print every answer of `tools`")
    args = parser.parse_args()
    COMMANDS[args.command](args)


if __name__ == "__main__":
    main()
