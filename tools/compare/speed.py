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
    return {**result, "prefill": result["prefill"][0], "decode": {str(row["context"]): row for row in result["decode"]}}


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


def measure(path, options):
    """All that is known of one file: what --save keeps and the reports are made from."""
    for_prefill, for_decode = tuned(path, 0)
    note(f"  llama.cpp is best with (threads, flash) {for_prefill} in prefill, {for_decode} in decode")
    rounds = []
    for i in range(options.rounds):
        note(f"  round {i + 1} of {options.rounds}")
        rounds.append({"start": starts(path, for_decode), "decode": yardstick("speed", path, for_decode, 0),
                       "prefill": yardstick("speed", path, for_prefill, 0), "ours": ours(path, [0])})
    return {"name": os.path.basename(path), "kind": kind_of(path), "bytes": os.path.getsize(path), "for_prefill": for_prefill,
            "for_decode": for_decode, "rounds": rounds, "deep": measure_deep(path, options.contexts)}


def measure_deep(path, contexts):
    """Once each, and for the record: no target hangs on it."""
    if not contexts:
        return None
    _, best = tuned(path, contexts[0])
    return {"theirs": yardstick("speed", path, best, *contexts), "ours": ours(path, contexts)}


def middle(values):
    return statistics.median(values)


def show(what, theirs, mine, ratio, target, unit, least=True):
    holds = None if target is None else (ratio >= target if least else ratio <= target)
    verdict = "" if holds is None else f"{'>=' if least else '<='} {target:<5} {'holds' if holds else 'MISSED'}"
    print(f"  {what:<26} {theirs:>10.4g} {mine:>10.4g} {unit:<6} {ratio:>7.2f}  {verdict}", flush=True)
    return holds is not False


def figures(file):
    """Pairs of llama.cpp's and Millrace's, of each round the best and of rounds the median."""
    rounds, mine = file["rounds"], [r["ours"] for r in file["rounds"]]
    out = {"decode": (middle(128 / min(r["decode"]["decode_s"]["0"]) for r in rounds),
                      middle(m["decode"]["0"]["tok_s"] for m in mine)),
           "prefill": (middle(512 / min(r["prefill"]["prefill_s"]) for r in rounds),
                       middle(m["prefill"]["tok_s"] for m in mine))}
    for key in ("load_to_first_token_s", "pss_bytes"):
        out[key] = tuple(middle(r["start"][side][key] for r in rounds) for side in (0, 1))
    floor, share = (middle(m["decode"]["0"][key] for m in mine) for key in ("floor_tok_s", "floor_share"))
    out["floor"], out["floor_share"] = floor, (out["decode"][0] / floor, share)
    for context, row in (file["deep"]["ours"]["decode"] if file["deep"] else {}).items():
        out[f"decode at {context}"] = (128 / min(file["deep"]["theirs"]["decode_s"][context]), row["tok_s"])
    return out


def report(file):
    kind, of = file["kind"], figures(file)
    print(f"\n{file['name']} ({kind}), {file['bytes'] / 1e6:.1f} MB")
    print(f"  {'':<26} {'llama.cpp':>10} {'millrace':>10} {'':<6} {'ratio':>7}  target")

    def line(what, key, target, unit, least=True):
        theirs, mine = of[key]
        return show(what, theirs, mine, mine / theirs, target, unit, least)

    of["MB"] = [b / 1e6 for b in of["pss_bytes"]]
    good = [line("decode 128", "decode", DECODE_TARGET.get(kind), "tok/s"),
            show("  of the bandwidth floor", *of["floor_share"], of["floor_share"][1], FLOOR_TARGET.get(kind), ""),
            line("prefill 512", "prefill", PREFILL_TARGET, "tok/s"),
            line("load to first token", "load_to_first_token_s", START_TARGET, "s", least=False),
            line("memory after it", "MB", MEMORY_TARGET, "MB", least=False)]
    print(f"  the floor was {of['floor']:.0f} tok/s: {file['rounds'][-1]['ours']['weight_bytes'] / 1e6:.1f} MB of weights, and the "
          "KV, at what the bare read loop reached between the steps")
    for key in of:
        if key.startswith("decode at "):
            line(f"decode 128 {key[7:]}", key, None, "tok/s")
    return all(good)


def markdown(files):
    """The rows of the tables in docs/numbers.md and README.md."""
    def ratio(pair, form="{:.0f}", mark="**", digits=1):
        theirs, mine = pair
        return f"{form.format(mine)} / {form.format(theirs)} = {mark}{mine / theirs:.{digits}f}{mark}"

    for file in files:
        of = figures(file)
        theirs, mine = (f"{100 * share:.0f} %" for share in of["floor_share"])
        share = f", {mine} of the bandwidth floor ({theirs})" if file["kind"] in FLOOR_TARGET else ""
        deep = "; ".join(ratio(of[key], mark="") for key in of if key.startswith("decode at "))
        print(f"| {file['kind']} | {ratio(of['decode'])}{share} | {ratio(of['prefill'])} | "
              f"{ratio(of['load_to_first_token_s'], '{:.3f}', digits=2)} | "
              f"{ratio([b / 1e6 for b in of['pss_bytes']], digits=2)} | {deep} |")
    for file in files:
        of = figures(file)
        print(f"| {file['kind']} | {ratio(of['decode'])} | {ratio(of['prefill'])} |")


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


def kind_of(path):
    return re.search(r"I?Q\d_[0-9A-Z]+(_[A-Z]+)?|B?F16|F32|$", os.path.basename(path)).group() or "?"


def measure_all(options):
    machine, before, load = json.loads(run(MILLRACE, "doctor", "--json")), stolen(), os.getloadavg()[0]
    measured = {"machine": machine, "files": []}
    for path in options.files or default_files():
        note(path)
        measured["files"].append(measure(path, options))
        after = stolen()
        measured["load"] = (load, os.getloadavg()[0])
        measured["stolen"] = (after[0] - before[0]) / max(after[1] - before[1], 1)
        if options.save:  # after every file: a run that is stopped keeps what it has
            with open(options.save, "w") as file:
                json.dump(measured, file, indent=1)
    return measured


def report_machine(measured):
    machine = measured["machine"]
    m, c = machine["machine"], machine["ceilings"]
    print(f"{m['cpu_name']}, {m['n_cpus']} CPUs on {m['n_cores']} cores, {c['read_gbps_all']:.1f} GB/s read; load "
          f"{measured['load'][0]:.2f}, {measured['load'][1]:.2f} at the end; {machine['time']}; "
          f"{100 * measured['stolen']:.1f} % of the time was stolen by other machines")
    for finding in machine["findings"]:
        print(f"  {finding['severity']}: {finding['what']}")


def main():
    parser = argparse.ArgumentParser(prog="tools/compare_llamacpp", description=__doc__)
    parser.add_argument("files", nargs="*", help="GGUF files with their type in the name (SmolLM2's types)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contexts", type=int, nargs="*", default=[2048, 8192], help="also decode at these")
    parser.add_argument("--save", metavar="FILE", help="keep every time that was measured, as JSON")
    parser.add_argument("--from", dest="load_from", metavar="FILE", help="measure nothing: report what --save kept")
    parser.add_argument("--markdown", action="store_true", help="print the rows of the tables in docs/numbers.md and README.md")
    options = parser.parse_args()
    if options.load_from:
        with open(options.load_from) as file:
            measured = json.load(file)
    else:
        measured = measure_all(options)
    if options.markdown:
        return markdown(measured["files"])
    report_machine(measured)
    sys.exit(0 if all([report(file) for file in measured["files"]]) else 1)


if __name__ == "__main__":
    main()
