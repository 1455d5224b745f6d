"""Millrace beside llama.cpp on the same files: see tools/compare_llamacpp. Both sides are measured in turns, each
in a process of its own; of repeats the best counts, of rounds the median. Loads are repeated one side after the other
(a virtual machine's first use of memory after a pause can cost more than all the rest). llama.cpp has the number of
threads and the attention (flash or not) that it is fastest with, for prefill and decode apart."""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MILLRACE = f"{ROOT}/build/release/src/millrace"
TYPES = ("Q4_0", "Q4_1", "Q4_K_M", "Q8_0")
# By type: the least ratio of decode, or the least share of the bandwidth floor.
DECODE_TARGET = {"Q4_0": 1.7, "Q4_1": 1.7, "Q4_K_M": 1.5}
FLOOR_TARGET = {"Q8_0": 0.85}
PREFILL_TARGET, START_TARGET, MEMORY_TARGET = 2.0, 0.5, 1.1
N_STARTS = 5


def run(*command):
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        sys.exit(f"failed with status {ran.returncode}: {' '.join(map(str, command))}")
    return ran.stdout


def yardstick(mode, path, setting, *contexts):
    return json.loads(run(sys.executable, f"{HERE}/yardstick.py", mode, path, *setting, *contexts))


def ours(path, contexts):
    result = json.loads(run(MILLRACE, "bench", path, "--json", "--no-store", "--contexts", ",".join(map(str, contexts))))
    return {**result, "prefill": result["prefill"][0], "decode": {row["context"]: row for row in result["decode"]}}


def starts(path, setting):
    """The quickest load to a first token of each side, and the memory it took."""
    def quickest(results):
        return min(results, key=lambda result: result["load_to_first_token_s"])

    pairs = [(yardstick("start", path, setting), json.loads(run(MILLRACE, "bench", path, "--json", "--no-store", "-n", 1, "-r", 1)))
             for _ in range(N_STARTS)]
    return [quickest(side) for side in zip(*pairs)]


def note(text):
    print(text, file=sys.stderr, flush=True)


def tuned(path, context):
    """llama.cpp's best settings (threads, flash) for prefill and for decode at a context, from one run of each."""
    n, tried = os.cpu_count(), {}
    for n_threads in sorted({1, *(n // d for d in (4, 2, 1) if n >= d)}):
        for flash in (0, 1):
            tried[n_threads, flash] = yardstick("speed", path, (n_threads, flash), context)
    return (min(tried, key=lambda s: min(tried[s]["prefill_s"])),
            min(tried, key=lambda s: min(tried[s]["decode_s"][str(context)])))


def measure(path, n_rounds):
    for_prefill, for_decode = tuned(path, 0)
    note(f"  llama.cpp is best with (threads, flash) {for_prefill} in prefill, {for_decode} in decode")
    rounds = []
    for i in range(n_rounds):
        note(f"  round {i + 1} of {n_rounds}")
        rounds.append({"start": starts(path, for_decode), "decode": yardstick("speed", path, for_decode, 0),
                       "prefill": yardstick("speed", path, for_prefill, 0), "ours": ours(path, [0])})
    return rounds


def middle(values):
    return statistics.median(values)


def show(what, theirs, mine, ratio, target, unit, least=True):
    holds = None if target is None else (ratio >= target if least else ratio <= target)
    verdict = "" if holds is None else f"{'>=' if least else '<='} {target:<5} {'holds' if holds else 'MISSED'}"
    print(f"  {what:<26} {theirs:>10.4g} {mine:>10.4g} {unit:<6} {ratio:>7.2f}  {verdict}", flush=True)
    return holds is not False


def report(path, kind, rounds):
    print(f"\n{os.path.basename(path)} ({kind}), {os.path.getsize(path) / 1e6:.1f} MB")
    print(f"  {'':<26} {'llama.cpp':>10} {'millrace':>10} {'':<6} {'ratio':>7}  target")
    decode = middle(128 / min(r["decode"]["decode_s"]["0"]) for r in rounds)
    prefill = middle(512 / min(r["prefill"]["prefill_s"]) for r in rounds)
    mine = [r["ours"] for r in rounds]
    my_decode = middle(m["decode"][0]["tok_s"] for m in mine)
    my_prefill = middle(m["prefill"]["tok_s"] for m in mine)
    floor, my_share = (middle(m["decode"][0][key] for m in mine) for key in ("floor_tok_s", "floor_share"))
    pairs = [[middle(r["start"][side][key] for r in rounds) for side in (0, 1)]
             for key in ("load_to_first_token_s", "pss_bytes")]
    good = [show("decode 128", decode, my_decode, my_decode / decode, DECODE_TARGET.get(kind), "tok/s"),
            show("  of the bandwidth floor", decode / floor, my_share, my_share, FLOOR_TARGET.get(kind), ""),
            show("prefill 512", prefill, my_prefill, my_prefill / prefill, PREFILL_TARGET, "tok/s"),
            show("load to first token", *pairs[0], pairs[0][1] / pairs[0][0], START_TARGET, "s", least=False),
            show("memory after it", *(b / 1e6 for b in pairs[1]), pairs[1][1] / pairs[1][0], MEMORY_TARGET, "MB",
                 least=False)]
    print(f"  the floor was {floor:.0f} tok/s: {mine[-1]['weight_bytes'] / 1e6:.1f} MB of weights, and the KV, at what the bare "
          "read loop reached between the steps")
    return all(good)


def report_deep(path, contexts):
    """Once each, and for the record: no target hangs on it."""
    _, best = tuned(path, contexts[0])
    theirs, mine = yardstick("speed", path, best, *contexts), ours(path, contexts)
    for context in contexts:
        rate = 128 / min(theirs["decode_s"][str(context)])
        show(f"decode 128 at {context}", rate, mine["decode"][context]["tok_s"],
             mine["decode"][context]["tok_s"] / rate, None, "tok/s")


def stolen():
    """Share of the machine's time that others took, since boot: (stolen, all)."""
    with open("/proc/stat") as file:
        times = [int(word) for word in file.readline().split()[1:9]]
    return times[7], sum(times)


def default_files():
    source = json.loads(run(MILLRACE, "pull", "--json"))["path"]
    files = []
    for kind in TYPES:
        files.append(source if kind == "Q4_1" else f"{ROOT}/build/compare/smollm2-135m.{kind}.gguf")
        if not os.path.exists(files[-1]):
            os.makedirs(os.path.dirname(files[-1]), exist_ok=True)
            run(MILLRACE, "quantize", source, files[-1], kind)
    return files


def main():
    parser = argparse.ArgumentParser(prog="tools/compare_llamacpp", description=__doc__)
    parser.add_argument("files", nargs="*", help="GGUF files with their type in the name (SmolLM2's types)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contexts", type=int, nargs="*", default=[2048, 8192], help="also decode at these")
    options = parser.parse_args()
    machine = json.loads(run(MILLRACE, "doctor", "--json"))
    m, c = machine["machine"], machine["ceilings"]
    print(f"{m['cpu_name']}, {m['n_cpus']} CPUs on {m['n_cores']} cores, {c['read_gbps_all']:.1f} GB/s read; load "
          f"{os.getloadavg()[0]:.2f}; {machine['time']}")
    for finding in machine["findings"]:
        print(f"  {finding['severity']}: {finding['what']}")
    before, good = stolen(), True
    for path in options.files or default_files():
        kind = re.search(r"I?Q\d_[0-9A-Z]+(_[A-Z]+)?|B?F16|F32|$", os.path.basename(path)).group() or "?"
        note(f"{path}")
        good &= report(path, kind, measure(path, options.rounds))
        if options.contexts:
            report_deep(path, options.contexts)
    after = stolen()
    print(f"\n{100 * (after[0] - before[0]) / max(after[1] - before[1], 1):.1f} % of the time was stolen by other machines; "
          f"load {os.getloadavg()[0]:.2f}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
