"""bench serve with small sizes: every row is there, with its target; how fast it was does not matter."""

import json
import subprocess
import sys

from serving import Server

MILLRACE = sys.argv[1]
JUDGED = ("overhead, median", "overhead, p99", "one stream over bench MODEL", "8 streams over one",
          "token gap during a long prompt, p99", "idle CPU time", "20 active streams, errors",
          "40 open streams, memory", "40 open streams, errors")
# What only the owner of a server's process and model can see.
OWN = ("one stream over bench MODEL", "idle CPU time", "40 open streams, memory")


def bench(*args):
    return subprocess.run([MILLRACE, "bench", *args, "--no-store"], capture_output=True, text=True, timeout=300)


def test_own_server():
    ran = bench("serve", "--quick", "-m", "tiny", "-t", "1")
    assert ran.returncode == 0, ran
    lines = ran.stdout.splitlines()
    for name in JUDGED:
        line = next((line for line in lines if line.startswith(name)), None)
        assert line and ("holds" in line or "MISSED" in line), (name, ran.stdout)
    assert all("holds" in line for line in lines if "errors" in line), ran.stdout


def test_running_server():
    with Server(MILLRACE) as server:
        ran = bench("serve", "--quick", "--url", server.url, "--json")
        assert ran.returncode == 0, ran
        figures = {figure["what"]: figure for figure in json.loads(ran.stdout)["figures"]}
        for name in JUDGED:
            assert (name in figures and figures[name]["value"] is not None) == (name not in OWN), (name, ran.stdout)
        assert server.wait_idle()


def test_wrong_arguments():
    for args in (["serve"], ["serve", "tiny", "other"], ["serve", "tiny", "-m", "other"], ["tiny", "--url", "http://x:1"],
                 ["rmsnorm", "-m", "tiny"], ["serve", "--url", "nonsense"]):
        ran = bench(*args)
        assert ran.returncode == 2 and ran.stderr.startswith("millrace: "), (args, ran)
    assert "did not start" in bench("serve", "-m", "/nowhere/x.gguf").stderr
    assert bench("serve", "--url", "http://127.0.0.1:1").returncode == 1


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("passed", name)
