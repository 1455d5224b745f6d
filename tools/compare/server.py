"""millrace serve beside llama.cpp's llama-server: see tools/compare_server. Both have the same file, two threads and the
same requests, in rounds that take turns; every load finds a server that has just started and answered one request.

chat: sessions at once, each asks its next question as soon as it has its answer; the whole takes so long.
agents: more sessions than llama-server has slots (millrace has none), a system prompt that all of them share, a task of
their own, and a tool's result in every turn; the time to the first token of turns 2 and later. A tool takes a quarter of a second.

Answers have a fixed number of tokens (ignore_eos), drawn greedily, and go back as they came. The client is this script,
a thread a session; what it costs is the same for both."""

import argparse
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MILLRACE = os.environ.get("MILLRACE", f"{ROOT}/build/release/src/millrace")
LLAMA_SERVER = os.environ.get("LLAMA_SERVER", f"{ROOT}/build/compare/llama_server/bin/llama-server")
CHAT_TARGET, AGENT_TARGET = 0.4, 0.25
N_SLOTS, SLOT_CONTEXT, TOOL_S, PATIENCE_S = 8, 8192, 0.25, 600
WORDS = ("river wheel stone grain water mill boy road field paper engine table window garden letter market winter summer "
         "green small heavy quiet early under between carries turns reads opens measures writes finds keeps").split()


def note(text):
    print(text, file=sys.stderr, flush=True)


def prose(seed, n_words):
    """About as many tokens as words, and the same on every machine."""
    draw = random.Random(seed)
    words = [draw.choice(WORDS) for _ in range(n_words)]
    return " ".join(word + ("." if i % 12 == 11 else "") for i, word in enumerate(words))


# ---- the servers


def millrace_command(model, port, options):
    # Pages for all sessions at once, as llama-server's context below. It has no slots to divide them between.
    return [MILLRACE, "serve", "-m", model, "--port", port, "-t", options.threads, "-c", SLOT_CONTEXT, "--kv-memory", "4G",
            "--kv-disk", "off",
            *(["--parallel", options.parallel] if options.parallel else [])]


def llama_command(model, port, options):
    # Each slot has the whole context that the model allows; a common beginning in another slot, or one that was put
    # aside in memory, is used again; parts of a prompt that only moved, from 256 tokens, too.
    return [LLAMA_SERVER, "-m", model, "--host", "127.0.0.1", "--port", port, "-t", options.threads,
            "-tb", options.threads, "-np", N_SLOTS,
            "-c", N_SLOTS * SLOT_CONTEXT, "-fa", "on", "-cb", "--cache-reuse", 256, "--cache-ram", 8192, "--jinja"]


COMMANDS = {"llama.cpp": llama_command, "millrace": millrace_command}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, side, options):
        self.port = free_port()
        command = [str(word) for word in COMMANDS[side](options.model, self.port, options)]
        self.said = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said)
        try:
            self.wait_up(command)
            self.ask([{"role": "user", "content": "Hello"}], 1)
        except BaseException:
            self.stop()
            raise

    def wait_up(self, command):
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.said.seek(0)
                sys.exit(f"{' '.join(command)}\ndid not start: {self.said.read()[-2000:]}")
            time.sleep(0.05)

    def is_up(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def ask(self, messages, n_tokens):
        """The text, seconds to the first of it, and what the server counted."""
        body = {"model": "m", "messages": messages, "max_tokens": n_tokens, "temperature": 0, "ignore_eos": True,
                "stream": True, "stream_options": {"include_usage": True}, "cache_prompt": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        start = time.monotonic()
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        if reply.status != 200:
            raise RuntimeError(f"status {reply.status}: {reply.read()[:500]}")
        text, first, usage = [], None, {}
        for line in reply:
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise RuntimeError(event["error"])
            usage = event.get("usage") or usage
            for choice in event["choices"]:
                delta = choice["delta"]
                if part := delta.get("content") or delta.get("reasoning_content"):
                    first = first or time.monotonic() - start
                    text.append(part)
        connection.close()
        return "".join(text), first or time.monotonic() - start, usage


# ---- the loads


def at_once(n, session):
    """session(i) of each, in threads; how long all of them took together."""
    failures = []

    def guarded(i):
        try:
            session(i)
        except Exception as failure:  # of a thread, which would be lost with it
            failures.append(f"session {i}: {failure!r}")

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit("\n".join(failures))
    return time.monotonic() - start


class Load:
    """What a load saw, of all its sessions."""

    def __init__(self, options):
        self.options, self.first_s, self.first_turn_s = options, [], []
        self.n_prompt, self.n_cached, self.n_answer = [], 0, 0

    def ask(self, server, messages, n_tokens, is_later):
        text, first, usage = server.ask(messages, n_tokens)
        self.n_prompt.append(usage.get("prompt_tokens", 0))
        self.n_answer += usage.get("completion_tokens", 0)
        self.n_cached += (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        (self.first_s if is_later else self.first_turn_s).append(first)
        messages.append({"role": "assistant", "content": text})

    def report(self, seconds):
        return {"seconds": seconds, "first_s": statistics.median(self.first_s), "worst_s": max(self.first_s),
                "each_first_s": [round(one, 4) for one in self.first_s],
                "first_turn_s": statistics.median(self.first_turn_s),
                "n_prompt": (min(self.n_prompt), max(self.n_prompt)), "n_prompt_all": sum(self.n_prompt),
                "n_cached": self.n_cached, "n_answer": self.n_answer}


def chat(server, options):
    load = Load(options)

    def session(i):
        messages = [{"role": "system", "content": "You are a helpful assistant."}]
        for turn in range(options.chat_turns):
            messages.append({"role": "user", "content": f"Question {turn} of {i}: {prose(f'{i} {turn}', 20)}?"})
            load.ask(server, messages, options.chat_tokens, turn > 0)

    return load.report(at_once(options.chat_sessions, session))


def agents(server, options):
    load = Load(options)
    tools = "You can call tools: read_file, write_file, run_command, search. " + prose("tools", 500)

    def session(i):
        messages = [{"role": "system", "content": tools}, {"role": "user", "content": f"Task {i}: {prose(f'task {i}', 400)}"}]
        for turn in range(options.agent_turns):
            if turn > 0:
                time.sleep(TOOL_S)
                messages.append({"role": "tool", "tool_call_id": f"call_{turn}",
                                 "content": f"Result {turn}: {prose(f'result {i} {turn}', 500)}"})
            load.ask(server, messages, options.agent_tokens, turn > 0)

    return load.report(at_once(options.agent_sessions, session))


# ---- both sides in turns


def q8_model():
    def millrace(*args):
        return subprocess.run([MILLRACE, *args], stdout=subprocess.PIPE, text=True, check=True).stdout

    path = f"{ROOT}/build/compare/smollm2-135m.Q8_0.gguf"
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        millrace("quantize", json.loads(millrace("pull", "--json"))["path"], path, "Q8_0")
    return path


def show(what, rounds, key, target):
    values = {side: statistics.median(one[key] for one in runs) for side, runs in rounds.items()}
    line = f"{what:<44}" + "".join(f" {values[side]:>10.3f}" if side in values else f" {'-':>10}" for side in COMMANDS)
    if len(values) < 2:
        print(line)
        return True
    ratios = [mine[key] / theirs[key] for theirs, mine in zip(rounds["llama.cpp"], rounds["millrace"])]
    ratio = statistics.median(ratios)
    holds = target is None or ratio <= target
    verdict = " " * 16 if target is None else f"  <= {target:<5} {'holds' if holds else 'MISSED':<6}"
    print(f"{line} {ratio:>7.3f}{verdict}  (rounds: {', '.join(f'{one:.3f}' for one in ratios)})")
    return holds


def show_counts(rounds):
    for side, runs in rounds.items():
        one = runs[-1]
        print(f"    {side}: prompts of {one['n_prompt'][0]} to {one['n_prompt'][1]} tokens, {one['n_prompt_all']} in all, "
              f"{one['n_cached']} of them cached, {one['n_answer']} tokens answered, in {one['seconds']:.1f} s")


def measure(load, options):
    sides = [side for side in COMMANDS if options.only in (None, side)]
    rounds = {side: [] for side in sides}
    for i in range(options.rounds):
        for side in sides if i % 2 == 0 else sides[::-1]:
            with Server(side, options) as server:
                rounds[side].append(load(server, options))
            note(f"{load.__name__}, round {i + 1} of {options.rounds}, {side}: {rounds[side][-1]['seconds']:.1f} s")
    return rounds


def cpu_name():
    with open("/proc/cpuinfo") as file:
        found = re.search(r"model name\s*: (.*)", file.read())
    return found[1] if found else "CPU"


def read_options():
    parser = argparse.ArgumentParser(prog="tools/compare_server", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="GGUF file (default: SmolLM2 135M as Q8_0)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="of both servers (default: 2)")
    parser.add_argument("--parallel", type=int, help="requests that millrace computes at once (default: its own, 64)")
    parser.add_argument("--only", choices=list(COMMANDS), help="run one side, without a verdict")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works; no verdict in the exit code")
    parser.add_argument("--save", metavar="FILE", help="keep what every round measured, as JSON")
    parser.add_argument("--from", dest="load_from", metavar="FILE", help="measure nothing: report what --save kept")
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table in docs/serving.md")
    options = parser.parse_args()
    options.chat_sessions, options.chat_turns, options.chat_tokens = (2, 3, 8) if options.quick else (8, 20, 32)
    options.agent_sessions, options.agent_turns, options.agent_tokens = (3, 2, 8) if options.quick else (12, 4, 48)
    if options.quick:
        options.rounds = 1
    if not options.load_from:
        options.model = options.model or q8_model()
    return options


def measure_all(options):
    """What --save keeps and the report is made from."""
    settings = {side: " ".join(os.path.basename(str(word)) for word in command(options.model, "PORT", options))
                for side, command in COMMANDS.items()}
    load = os.getloadavg()[0]
    sizes = {name: getattr(options, name) for name in ("chat_sessions", "chat_turns", "agent_sessions", "agent_turns")}
    return {"cpu": cpu_name(), "n_cpus": os.cpu_count(), "model": os.path.basename(options.model), "settings": settings,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "sizes": sizes, "chat": measure(chat, options),
            "agents": measure(agents, options), "load": (load, os.getloadavg()[0])}


def report(measured):
    print(f"{measured['cpu']}, {measured['n_cpus']} CPUs, load {measured['load'][0]:.2f}, {measured['load'][1]:.2f} at the end; "
          f"{measured['model']}; {measured['time']}")
    for side, words in measured["settings"].items():
        print(f"  {side}: {words}")
    print(f"\n{'':<44}" + "".join(f" {side:>10}" for side in COMMANDS) + f" {'ratio':>7}  target")
    chats, agents_, n = measured["chat"], measured["agents"], measured["sizes"]
    good = show(f"{n['chat_sessions']} chats of {n['chat_turns']} turns, seconds", chats, "seconds", CHAT_TARGET)
    show_counts(chats)
    good &= show(f"{n['agent_sessions']} agents, turns 2 to {n['agent_turns']}, first token, s", agents_, "first_s", AGENT_TARGET)
    show("    the longest of them", agents_, "worst_s", None)
    show("    of turn 1", agents_, "first_turn_s", None)
    show("    all of it, seconds", agents_, "seconds", None)
    show_counts(agents_)
    return good


def markdown(measured):
    """The rows of the table in docs/serving.md."""
    def cells(rounds, keys, target=None):
        sides = {side: [statistics.median(one[key] for one in runs) for key in keys] for side, runs in rounds.items()}
        ratios = [statistics.median(mine[key] / theirs[key] for theirs, mine in zip(rounds["llama.cpp"], rounds["millrace"]))
                  for key in keys]
        text = "; ".join(f"{ratio:.2f}" for ratio in ratios)
        if target is not None and ratios[0] > target:
            text = f"**{text}, missed**"
        return " | ".join([*("; ".join(f"{value:.1f}" for value in sides[side]) + " s" for side in COMMANDS), text, str(target or "")])

    n = measured["sizes"]
    print(f"| {n['chat_sessions']} chats of {n['chat_turns']} turns | {cells(measured['chat'], ['seconds'], CHAT_TARGET)} |")
    print(f"| {n['agent_sessions']} agents of {n['agent_turns']} turns: first token of turns 2 to {n['agent_turns']}, median | "
          f"{cells(measured['agents'], ['first_s'], AGENT_TARGET)} |")
    print(f"| the longest of them; of turn 1; all of it | {cells(measured['agents'], ['worst_s', 'first_turn_s', 'seconds'])} |")


def main():
    options = read_options()
    if options.load_from:
        with open(options.load_from) as file:
            measured = json.load(file)
    else:
        measured = measure_all(options)
    if options.save:
        with open(options.save, "w") as file:
            json.dump(measured, file, indent=1)
    if options.markdown:
        return markdown(measured)
    good = report(measured)
    if options.quick:
        print("--quick: do not quote these times")
    sys.exit(0 if good or options.quick else 1)


if __name__ == "__main__":
    main()
