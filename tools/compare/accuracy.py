"""Whether Millrace makes of a text what llama.cpp makes of it, on the same file: see tools/compare_llamacpp. The text
is cut into windows, each a sequence of its own; both are given the same token ids. The committed text is an agent at
work: prose, tool calls, code and logs. Where a text leaves several words open, rounding decides between them: how often
llama.cpp agrees with itself, with another attention, says how often. In prose (--text tests/data/english.txt) it often
does."""

import argparse
import json
import math
import os
import subprocess
import sys

import numpy
import yardstick

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MILLRACE = f"{ROOT}/build/release/src/millrace"
WINDOW = 512
FLASH_DEFAULT, FLASH_OFF = -1, 0
MAX_PERPLEXITY_ERROR, MIN_AGREEMENT = 0.01, 0.97


def run(*command):
    return json.loads(subprocess.run([MILLRACE, *command, "--json"], stdout=subprocess.PIPE, check=True).stdout)


def theirs(engine, tokens):
    """The likeliest token after each, and the log-probability of the one that came."""
    logits = engine.logits(tokens)
    top = logits.max(axis=1)
    log_sum = top + numpy.log(numpy.exp(logits - top[:, None]).sum(axis=1))
    return logits.argmax(axis=1), [logits[i, t] - log_sum[i] for i, t in enumerate(tokens[1:])]


def ours(model, tokens):
    rows = run("logits", model, "--tokens", ",".join(map(str, tokens)), "--all", "--top", "1")
    return [row["top"][0]["token"] for row in rows]


def n_equal(a, b):
    return sum(x == y for x, y in zip(a, b, strict=True))


def main():
    parser = argparse.ArgumentParser(prog="tools/compare_llamacpp --accuracy", description=__doc__)
    parser.add_argument("file", nargs="?", help="a GGUF file (the default model)")
    parser.add_argument("--text", default=f"{ROOT}/tests/data/agent.txt")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of llama.cpp")
    options = parser.parse_args()
    model = options.file or run("pull")["path"]
    engine = yardstick.Engine(model, WINDOW, options.threads, FLASH_DEFAULT)
    other = yardstick.Engine(model, WINDOW, options.threads, FLASH_OFF)
    with open(options.text, "rb") as file:
        tokens = engine.tokens_of(file.read())
    n_same, n_own, logprobs = 0, 0, []
    for at in range(0, len(tokens), WINDOW):
        window = tokens[at : at + WINDOW]
        best, scores = theirs(engine, window)
        n_same += n_equal(best, ours(model, window))
        n_own += n_equal(best, theirs(other, window)[0])
        logprobs += scores
    their_perplexity = math.exp(-sum(logprobs) / len(logprobs))
    our_perplexity = run("perplexity", model, options.text, "--window", str(WINDOW))["perplexity"]
    error, agreement = our_perplexity / their_perplexity - 1, n_same / len(tokens)
    print(f"{os.path.basename(model)}, {len(tokens)} tokens in windows of {WINDOW}")
    print(f"perplexity: llama.cpp {their_perplexity:.4f}, millrace {our_perplexity:.4f}, {100 * error:+.3f} %")
    print(f"the same next token: {100 * agreement:.2f} %; llama.cpp with itself, without flash attention: "
          f"{100 * n_own / len(tokens):.2f} %")
    holds = abs(error) <= MAX_PERPLEXITY_ERROR and agreement >= MIN_AGREEMENT
    print("holds" if holds else f"MISSED: within {MAX_PERPLEXITY_ERROR:.0%} and at least {MIN_AGREEMENT:.0%}")
    sys.exit(0 if holds else 1)


if __name__ == "__main__":
    main()
