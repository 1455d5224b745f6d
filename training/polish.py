"""A last, short phase against repetition: the small model loops where its corpus only repeats itself now and then.

    python3 -m training.polish --corpus CORPUS --raw RAW --model MODEL

Stories are read again, also those that the repetition filter dropped. A token that completes four tokens in a
row which the text had before is made less likely (unlikelihood, -log(1 - p)); every other token is learnt as
before. A third of each batch is other documents, so that nothing else is lost. A few minutes on two CPU cores.
MODEL's weights are replaced; the ones before stay as unpolished.safetensors.
"""
import argparse
import pathlib
import random
import shutil
import time

import torch
import torch.nn.functional as F

from training import corpus, grammar
from training.export import load, read_tokenizer, save_directory
from training.filters import most_repeats
from training.tokenizer import document, read_records

STEPS, TINY_STEPS = 160, 2
WARM_UP = 10
BATCHES = 4  # of the teacher's stories that are looked through
LEARNING_RATE = 4e-4
STORIES, OTHERS = 4, 2  # documents in a batch
LENGTH = 288
REPEAT = 4
SEED = 3


def repeated_stories(raw, batches):
    """Documents of stories that say four words in a row again and again."""
    for batch in range(batches):
        for row in corpus.read_raw(raw, "story", batch):
            if most_repeats(row["text"]) > 2:
                messages = grammar.conversation("story", row["seed"])
                yield document({"messages": messages + [{"role": "assistant", "content": row["text"]}]})


def repeats(tokens, start):
    """For each token, whether it completes REPEAT tokens in a row that were there before, from `start` on: an
    answer may repeat its prompt."""
    seen, flags = set(), [False] * start
    for end in range(start + 1, len(tokens) + 1):
        gram = tuple(tokens[max(start, end - REPEAT):end])
        flags.append(len(gram) == REPEAT and gram in seen)
        seen.add(gram)
    return flags


def batch_of(tokenizer, stories, others):
    """Tokens, and for each after the first: 1 to learn it, -1 to unlearn it, 0 for what fills up a row."""
    rows, signs = [], []
    turn = tokenizer.token_to_id("<|im_start|>")
    for text in stories + others:
        ids = tokenizer.encode(text).ids[:LENGTH + 1]
        answer = max(i for i, token in enumerate([turn] + ids) if token == turn)
        flags = repeats(ids, answer) if text in stories else [False] * len(ids)
        fill = LENGTH + 1 - len(ids)
        rows.append(ids + [0] * fill)
        signs.append([-1 if flag else 1 for flag in flags[1:]] + [0] * fill)
    return torch.tensor(rows), torch.tensor(signs)


def loss_of(model, tokens, signs):
    losses = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    unlike = -torch.log1p(-torch.exp(-losses).clamp(max=1 - 1e-4))
    signs = signs.flatten()
    return (losses * (signs == 1) + unlike * (signs == -1)).sum() / (signs != 0).sum()


def polish(args):
    model, tokenizer = load(args.model).train(), read_tokenizer(args.model)
    rng = random.Random(SEED)
    records = read_records(args.corpus / "train.jsonl.xz")
    kept = [r for r in records if r["kind"] == "story" and not r.get("plain")]
    others = [r for r in records if r["kind"] != "story"]
    looping = list(repeated_stories(args.raw, 1 if args.tiny else BATCHES)) or [document(r) for r in others]
    steps = TINY_STEPS if args.tiny else STEPS
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.95), weight_decay=0.0)
    started = time.time()
    for step in range(steps):
        stories = rng.sample(looping, STORIES // 2)
        stories += [document(r) for r in rng.sample(kept, min(len(kept), STORIES // 2))]
        loss = loss_of(model, *batch_of(tokenizer, stories, [document(r) for r in rng.sample(others, OTHERS)]))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * min((step + 1) / WARM_UP, 2 * (steps - step) / steps, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % 10 == 0:
            print(f"step {step + 1}: loss {loss.item():.4f}, {time.time() - started:.0f} s", flush=True)
    shutil.copy(args.model / "model.safetensors", args.model / "unpolished.safetensors")
    save_directory(model, args.model)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--raw", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--tiny", action="store_true", help="two steps, for a test")
    polish(parser.parse_args())


if __name__ == "__main__":
    main()
