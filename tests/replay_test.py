"""replay on small traces against the small model: what is remembered is counted as cached, what a killed server lost as
recomputed, and what is no trace is refused."""

import json
import os
import subprocess
import sys
import tempfile

from serving import Server

MILLRACE, MAKE_TRACE = sys.argv[1:3]
FOLDER = tempfile.TemporaryDirectory()


def trace(kind, *args):
    path = os.path.join(FOLDER.name, f"{kind}.jsonl")
    made = subprocess.run([MAKE_TRACE, kind, "--sessions", "3", "--turns", "4", "--answer", "6", "--system", "60", "--scale",
                           "0.1", "--arrival", "0.1", *args], capture_output=True, text=True, check=True)
    with open(path, "w") as file:
        file.write(made.stdout)
    return path


def replay(*args):
    environment = {**os.environ, "HOME": FOLDER.name}
    return subprocess.run([MILLRACE, "replay", *args, "--no-store"], capture_output=True, text=True, timeout=300,
                          env=environment)


def played(*args):
    ran = replay(*args, "--json")
    assert ran.returncode == 0, ran
    return json.loads(ran.stdout)


def test_history_is_not_computed_again():
    with Server(MILLRACE) as server:
        for kind in ("agents", "coding", "chats"):
            said = played(trace(kind), "--url", server.url, "--speed", "1000")
            later = said["summaries"][1]
            assert later["turns"] >= 9 and later["history_tokens"] > 0, later
            # The last token of an answer was drawn and not computed.
            assert later["recomputed_most_in_a_turn"] <= 1, (kind, said)


# Where all fits nothing is computed again, where little fits much is, and the policy keeps the more useful.
def test_simulated():
    path = trace("coding", "--sessions", "12", "--turns", "8", "--scale", "1")
    for policy in ("value", "lru"):
        later = played(path, "--simulate", policy, "--memory-tokens", "1000000", "--disk-tokens", "1000000")["summaries"][1]
        assert later["turns"] >= 84 and later["recomputed_most_in_a_turn"] <= 1, later
    small = ("--memory-tokens", "6000", "--disk-tokens", "6000")
    few = {policy: played(path, "--simulate", policy, *small)["summaries"][1] for policy in ("value", "lru")}
    assert 0 < few["value"]["recomputed_tokens"] < 0.9 * few["lru"]["recomputed_tokens"], few
    assert few["value"]["history_tokens"] == few["lru"]["history_tokens"], few
    assert "leave out --url" in replay(path, "--simulate", "lru", "--url", "http://127.0.0.1:1").stderr
    assert replay(path, "--simulate", "fifo").returncode == 2
    ran = replay(path, "--simulate", "value", "--memory-tokens", "64")
    assert ran.returncode == 1 and "do not hold a prompt" in ran.stderr, ran


def test_make_trace_refuses_what_makes_no_trace():
    assert trace("agents", "--arrival", "0", "--scale", "0")
    for args in (["--arrival", "-1"], ["--scale", "nan"], ["--scale", "inf"], ["--system", "-5"], ["--turns", "0"]):
        ran = subprocess.run([MAKE_TRACE, "agents", *args], capture_output=True, text=True)
        assert ran.returncode == 2 and "Traceback" not in ran.stderr, (args, ran)


def test_twins():
    with Server(MILLRACE) as server:
        said = played(trace("agents"), "--url", server.url, "--speed", "1000", "--twins")
        assert said["summaries"][1]["first_token_over_twin"] > 0, said
        assert all(("twin_first_token_s" in turn) == (turn["turn"] > 0) for turn in said["turns"]), said


def test_killed_server():
    said = played(trace("agents"), "-m", "tiny", "--serve", "-t 1 --kv-memory 1G", "--speed", "1000", "--kill-after", "0.5")
    assert len(said["summaries"]) == 3 and any(turn["after_kill"] for turn in said["turns"]), said
    assert len(said["turns"]) == 12, said


def test_the_table():
    with Server(MILLRACE) as server:
        ran = replay(trace("agents"), "--url", server.url, "--speed", "1000")
        assert ran.returncode == 0 and "turns with a history" in ran.stdout, ran


def test_wrong_arguments():
    path = trace("agents")
    for args in ([path], [path, "--url", "http://127.0.0.1:1", "-m", "tiny"], [path, "--url", "nonsense"],
                 [path, "--url", "http://127.0.0.1:1", "--kill-after", "0.5"],
                 ["/nowhere", "--url", "http://127.0.0.1:1"]):
        ran = replay(*args)
        assert ran.returncode == 2 and ran.stderr.startswith("millrace: "), (args, ran)
    assert replay(path, "--url", "http://127.0.0.1:1").returncode == 1
    ran = replay(MAKE_TRACE, "--url", "http://127.0.0.1:1")
    assert ran.returncode == 1 and "line 1" in ran.stderr, ran


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("passed", name)
