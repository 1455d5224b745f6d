"""Makes the corpus: `write` asks the teacher, `build` filters what it wrote and composes dialogues of it.

    python3 -m training.corpus write --teacher SmolLM2.gguf --raw RAW      needs a GPU
    python3 -m training.corpus build --raw RAW --out CORPUS

RAW gets one file a batch; batches that are there are kept, so a cut run goes on where it was. CORPUS gets
train.jsonl.xz, held_out.jsonl.xz and report.json (what each filter dropped, and the hash of both).
"""
import argparse
import collections
import hashlib
import json
import lzma
import multiprocessing
import pathlib
import re
import statistics
import time

from training import grammar, tools
from training.filters import NearDuplicates, examine

TEMPERATURE, MIN_P = 0.7, 0.08
BATCH = 2048
# kind: (batches to train on, most new tokens). One more batch of each kind is held out. An ending goes on
# from a story and a follow-up from a question, so they come later.
PLAN = {"story": (36, 144), "explanation": (20, 128), "question": (24, 96), "smalltalk": (3, 64),
        "ending": (36, 56), "followup": (8, 80), "reason": (30, 24), "result": (15, 24)}
TINY_BATCH = 8
TINY_PLAN = {kind: (1, 24) for kind in PLAN}
ONE_SENTENCE = {"reason", "result"}
TWO_SENTENCES = {"ending"}
IDENTITIES = 600
SENTENCE_END = re.compile(r'[.!?]["”\']?(?=\s|$)')
PLAIN = {"story": 0.3, "explanation": 0.3}  # how many answers stand alone, without a chat around them


def batch_seeds(batch, size):
    """The last batch of a kind is the held-out one, called -1."""
    start = grammar.HELD_OUT if batch < 0 else batch * size
    return range(start, start + size)


def tool_scene(seed):
    """The tools of a dialogue, the two that are asked for, the user's words, the results. All from the seed."""
    rng = grammar.rng_of("tool", seed)
    made = tools.tool_set(rng, grammar.is_held_out(seed))
    wanted = rng.sample(made, min(2, len(made)))
    scenes = [{"tool": t, "request": tools.request(rng, t), "result": tools.result(rng, t)} for t in wanted]
    return {"rng": rng, "tools": made, "scenes": scenes}


# What the teacher is asked: the messages, and the first words of its answer.

def reason_prompt(seed):
    do = tools.doing(tool_scene(seed)["scenes"][0]["tool"])
    return ([{"role": "user", "content": f"Why do you want to {do}? Answer in one short sentence."}],
            grammar.rng_of("reason", seed).choice([f"I want to {do} because", f"I need to {do} because", "I am", "My",
                                                   f"I have to {do} so that"]))


def result_prompt(seed):
    scene = tool_scene(seed)["scenes"][0]
    body, key, value = scene["result"]
    return ([{"role": "system", "content": "You tell the user the result of a request in one short sentence."},
             {"role": "user", "content": f"Request: {scene['request']}\nResult: {json.dumps(body)}"}],
            tools.result_answer(grammar.rng_of("result", seed), key, value))


def ending_prompt(seed, story):
    return grammar.conversation("story", seed), f"{story}\n\n{grammar.ending(seed)}" if story else "The end."


def followup_prompt(seed, answer):
    """A question, its answer, and the next question."""
    messages = grammar.conversation("question", seed)
    if not answer:
        return messages, ""
    more = {"role": "user", "content": grammar.followup(grammar.rng_of("followup", seed))}
    return messages + [{"role": "assistant", "content": answer}, more], ""


def prompts_of(kind, seeds, raw, batch):
    if kind in grammar.PROMPTS:
        return [(grammar.conversation(kind, s), grammar.opening(s) if kind == "story" else "") for s in seeds]
    if kind in LATER:
        first, prompt = LATER[kind]
        texts = {row["seed"]: row["text"] for row in read_raw(raw, first, batch)}
        return [prompt(seed, texts.get(seed)) for seed in seeds]
    return [{"reason": reason_prompt, "result": result_prompt}[kind](seed) for seed in seeds]


LATER = {"ending": ("story", ending_prompt), "followup": ("question", followup_prompt)}


def cut(kind, start, written):
    """An answer up to the end of a sentence: its first or second where the kind wants no more, else its last."""
    text = (start.rpartition("\n\n")[2] + written if kind == "ending" else start + written).strip()
    ends = [m.end() for m in SENTENCE_END.finditer(text) if m.end() > len(start) or kind == "ending"]
    if not ends:
        return ""
    if kind in ONE_SENTENCE:
        return text[:ends[0]]
    return text[:ends[min(1, len(ends) - 1)] if kind in TWO_SENTENCES else ends[-1]]


def raw_path(raw, kind, batch):
    return raw / (f"{kind}-held-out.jsonl.xz" if batch < 0 else f"{kind}-{batch:03}.jsonl.xz")


def read_raw(raw, kind, batch):
    with lzma.open(raw_path(raw, kind, batch), "rt") as file:
        return [json.loads(line) for line in file]


def write_lines(path, records):
    """Written whole or not at all."""
    data = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    part = path.with_suffix(".part")
    part.write_bytes(lzma.compress(data.encode(), preset=2))
    part.rename(path)
    return data


def write_batch(teacher, raw, kind, batch, size, max_new):
    seeds = batch_seeds(batch, size)
    prompts = prompts_of(kind, seeds, raw, batch)
    conversations, starts = zip(*prompts)
    seed = int.from_bytes(hashlib.sha256(f"{kind}:{batch}".encode()).digest()[:4], "little")
    started = time.time()
    written = teacher.write(conversations, starts, max_new, TEMPERATURE, MIN_P, seed)
    took = time.time() - started
    texts = [cut(kind, start, text) for start, text in zip(starts, written)]
    kept = [(s, t) for s, t in zip(seeds, texts) if t]
    scores = teacher.perplexity([t for _, t in kept])
    write_lines(raw_path(raw, kind, batch), [{"seed": s, "text": t, "perplexity": round(p, 3)}
                                             for (s, t), p in zip(kept, scores)])
    n_tokens = sum(len(e.ids) for e in teacher.tokenizer.encode_batch([t for _, t in kept]))
    print(f"{kind} {batch}: {len(kept)} of {size}, {n_tokens} tokens, {n_tokens / took:.0f} a second, "
          f"{time.time() - started:.1f} s", flush=True)


def write(args):
    import torch
    from training.teacher import Teacher
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size, plan = (TINY_BATCH, TINY_PLAN) if args.tiny else (BATCH, PLAN)
    teacher = Teacher(args.teacher, device, batch=size, max_length=704)
    args.raw.mkdir(parents=True, exist_ok=True)
    for kind, (batches, max_new) in plan.items():
        for batch in [-1, *range(batches)]:
            if not raw_path(args.raw, kind, batch).exists():
                write_batch(teacher, args.raw, kind, batch, size, max_new)


# Building: each function below turns one raw text into a record, or says why not.

def chat_record(kind, row):
    rng = grammar.rng_of(f"{kind} record", row["seed"])
    answer = {"role": "assistant", "content": row["text"]}
    if rng.random() < PLAIN.get(kind, 0):
        return {"messages": [answer], "plain": True}
    record = {"messages": grammar.conversation(kind, row["seed"]) + [answer]}
    if kind == "question" and rng.random() < 0.3:
        made = tools.tool_set(rng, grammar.is_held_out(row["seed"]))
        record["tools"] = [t["definition"] for t in made]  # none of them helps
    return record


def tool_record(seed, reason, answered):
    """A dialogue with tools. `reason` and `answered` are the teacher's words, or None."""
    scene = tool_scene(seed)
    rng, first = scene["rng"], scene["scenes"][0]
    definitions = [t["definition"] for t in scene["tools"]]
    messages = []
    if rng.random() < 0.3:
        messages.append({"role": "system", "content": grammar.pick(rng, "persona")})
    if rng.random() < 0.06:
        return refused_record(rng, messages, first, definitions)
    messages += called_turn(first, reason if rng.random() < 0.7 else None)
    if rng.random() < 0.5:
        messages += answered_turn(rng, first, answered)
        if len(scene["scenes"]) > 1 and rng.random() < 0.4:
            messages += called_turn(scene["scenes"][1], None)
    return {"messages": messages, "tools": definitions}


def refused_record(rng, messages, scene, definitions):
    """The tool that is asked for is not on offer."""
    others = [d for d in definitions if d is not scene["tool"]["definition"]]
    messages.append({"role": "user", "content": scene["request"]})
    messages.append({"role": "assistant", "content": tools.refusal(rng, scene["tool"])})
    return {"messages": messages, "tools": others} if others else {"messages": messages}


def called_turn(scene, reason):
    said = f"{reason} {scene['request']}" if reason else scene["request"]
    return [{"role": "user", "content": said},
            {"role": "assistant", "tool_calls": [tools.call_message(scene["tool"])]}]


def answered_turn(rng, scene, answered):
    body, key, value = scene["result"]
    return [{"role": "tool", "content": json.dumps(body)},
            {"role": "assistant", "content": answered or tools.result_answer(rng, key, value) + "."}]


class Builder:
    def __init__(self, raw, plan, size, pool):
        self.raw, self.plan, self.size, self.pool = raw, plan, size, pool
        self.scores = collections.defaultdict(list)
        self.duplicates = NearDuplicates()
        self.counts = collections.Counter()
        self.records = {"train": [], "held_out": []}

    def rows(self, kind):
        """Training batches first, so that what is held out is compared with all that is trained on."""
        for batch in [*range(self.plan[kind][0]), -1]:
            yield from read_raw(self.raw, kind, batch)

    def add(self, kind, seed, writers, record):
        split = "held_out" if grammar.is_held_out(seed) else "train"
        self.counts[f"{kind}: kept, {split}"] += 1
        self.records[split].append({"kind": kind, "seed": seed, "by": writers, **record})

    def good(self, kind, rows):
        """The rows that pass the filters of texts; counts the others by what was wrong with them."""
        rows = list(rows)
        for row, (why, bands) in zip(rows, self.pool.map(examine, [(kind, row) for row in rows], chunksize=500)):
            why = why or self.duplicates.fault(bands)
            if why:
                self.counts[f"{kind}: dropped, {why}"] += 1
            else:
                yield row

    def build(self):
        for kind in grammar.PROMPTS:
            rows = self._stories() if kind == "story" else self.rows(kind)
            for row in self.good(kind, rows):
                self.scores[kind].append(row["perplexity"])
                self.add(kind, row["seed"], ["grammar", "teacher"], chat_record(kind, row))
        self._followups()
        self._tools()
        for seed in range(IDENTITIES):
            self.add("identity", seed, ["grammar"], {"messages": grammar.identity(seed)})
        return self.records

    def _stories(self):
        """A story is its first part, whose perplexity it keeps, and its ending."""
        endings = {row["seed"]: row["text"] for row in self.good("ending", self.rows("ending"))}
        for row in self.rows("story"):
            if row["seed"] in endings:
                yield {**row, "text": f"{row['text']}\n\n{endings[row['seed']]}"}

    def _followups(self):
        answers = {row["seed"]: row["text"] for row in self.rows("question")}
        for row in self.good("followup", self.rows("followup")):
            messages, _ = followup_prompt(row["seed"], answers.get(row["seed"]))
            if len(messages) > 2:
                self.add("followup", row["seed"], ["grammar", "teacher"],
                         {"messages": messages + [{"role": "assistant", "content": row["text"]}]})

    def _tools(self):
        reasons = {row["seed"]: row["text"] for row in self.good("reason", self.rows("reason"))}
        answers = {row["seed"]: row["text"] for row in self.good("result", self.rows("result"))}
        n_batches = self.plan["reason"][0]
        for seed in [s for batch in [*range(n_batches), -1] for s in batch_seeds(batch, self.size)]:
            words = [reasons.get(seed), answers.get(seed)]
            record = tool_record(seed, *words)
            why = call_fault(record)
            if why:
                self.counts[f"tool: dropped, {why}"] += 1
            else:
                self.add("tool", seed, ["grammar", "teacher"] if any(words) else ["grammar"], record)


def call_fault(record):
    """Every call that is taught must be valid."""
    for message in record["messages"]:
        for call in message.get("tool_calls", []):
            why = tools.fault(f"<tool_call>{json.dumps(call['function'])}</tool_call>", record["tools"])
            if why:
                return why
    return None


def build(args):
    size, plan = (TINY_BATCH, TINY_PLAN) if args.tiny else (BATCH, PLAN)
    with multiprocessing.Pool() as pool:
        builder = Builder(args.raw, plan, size, pool)
        records = builder.build()
    args.out.mkdir(parents=True, exist_ok=True)
    hashes = {}
    for split, part in records.items():
        data = write_lines(args.out / f"{split}.jsonl.xz", part)
        hashes[split] = hashlib.sha256(data.encode()).hexdigest()
    middle = {kind: round(statistics.median(scores), 3) for kind, scores in builder.scores.items()}
    report = {"sha256": hashes, "median perplexity under the teacher": middle,
              "counts": dict(sorted(builder.counts.items()))}
    (args.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["write", "build"])
    parser.add_argument("--teacher", type=pathlib.Path)
    parser.add_argument("--raw", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--tiny", action="store_true", help="a few texts, for a test on a CPU")
    args = parser.parse_args()
    {"write": write, "build": build}[args.command](args)


if __name__ == "__main__":
    main()
