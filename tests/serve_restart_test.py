"""What `millrace serve` remembers when it is killed and started again: contexts come from disk, the answers are those of
a server that never stopped. Usage: serve_restart_test.py MILLRACE [UNITTEST ARGS]"""

import glob
import os
import re
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from serving import Server

MILLRACE = os.path.abspath(sys.argv.pop(1))
STORY = "The miller opened the gate, and the water ran over the wheel. " * 40
ASK = {"max_tokens": 24, "temperature": 0, "seed": 3, "logprobs": True}
AROUND = 24  # tokens of a message around its text


def user(text):
    return {"role": "user", "content": text}


def assistant(body):
    return {"role": "assistant", "content": body["choices"][0]["message"]["content"]}


def n_cached(body):
    return body["usage"]["prompt_tokens_details"]["cached_tokens"]


def metric(server, name):
    text = server.ask("/metrics")[1].decode()
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert found, f"no {name} in {text}"
    return float(found[1])


class Restart(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.temporary.name, "kv")
        self.addCleanup(self.temporary.cleanup)

    def server(self, *args, **fields):
        return Server(MILLRACE, "--kv-disk", self.folder, "--kv-disk-size", "1G", "-c", "4096", *args, **fields)

    def wait_written(self, server):
        deadline = time.monotonic() + 20
        while (n := metric(server, "millrace_kv_disk_waiting")) > 0 or metric(server, "millrace_kv_disk_records") == 0:
            self.assertLess(time.monotonic(), deadline, f"{n} pages still wait")
            time.sleep(0.05)

    def wait_metric(self, server, name, expected):
        """Metrics are what the engine showed a moment ago."""
        deadline = time.monotonic() + 20
        while (n := metric(server, name)) != expected:
            self.assertLess(time.monotonic(), deadline, f"{name} is {n}, not {expected}")
            time.sleep(0.05)

    def kv(self, *args):
        return subprocess.run([MILLRACE, "kv", *args, "--kv-disk", self.folder], capture_output=True, text=True)

    def turns(self, server, between=lambda server: server):
        """Two turns; the server that takes the second is what `between` gives."""
        history = [user(STORY + "What turned?")]
        first = server.chat(history, **ASK)
        server = between(server)
        history += [assistant(first), user("And then?")]
        return server, first, server.chat(history, **ASK)

    def test_1_a_killed_server_goes_on_where_it_was(self):
        with self.server() as server:
            _, first, expected = self.turns(server)
        subprocess.run([MILLRACE, "kv", "clear", "--kv-disk", self.folder], check=True, capture_output=True)

        def restart(server):
            time.sleep(1)  # what stood a second before is there
            server.stop(kill=True)
            return self.server()
        server, again, second = self.turns(self.server(), restart)
        with server:
            self.assertEqual(again["choices"], first["choices"])
            self.assertEqual(second["choices"], expected["choices"])  # log-probabilities too
            self.assertGreaterEqual(n_cached(second), first["usage"]["prompt_tokens"] - 1)
            self.assertLess(second["usage"]["prompt_tokens"] - n_cached(second), 2 * AROUND + 24)
            self.assertGreater(second["timings"]["cache_disk_n"], 0)
            self.wait_metric(server, 'millrace_cached_tokens_total{tier="disk"}', second["timings"]["cache_disk_n"])
            self.assertEqual(metric(server, 'millrace_kv_disk_verify_failures_total{when="start"}'), 0)

    def test_2_damage_is_a_miss_and_a_counter(self):
        def damage(server):
            self.wait_written(server)
            server.stop(kill=True)
            for path in glob.glob(self.folder + "/*/*.kv"):
                with open(path, "r+b") as file:
                    file.seek(os.path.getsize(path) // 2)
                    byte = file.read(1)
                    file.seek(-1, os.SEEK_CUR)
                    file.write(bytes([byte[0] ^ 1]))
            return self.server()
        server, _, second = self.turns(self.server(), damage)
        with server:
            self.wait_metric(server, 'millrace_kv_disk_verify_failures_total{when="read"}', 1)
            self.assertGreater(n_cached(second), 0)
        with Server(MILLRACE, "--kv-disk", "off", "-c", "4096") as fresh:
            self.assertEqual(self.turns(fresh)[2]["choices"], second["choices"])

    def test_3_in_memory_stays_off_the_disk(self):
        with self.server() as server:
            server.chat([user(STORY)], prompt_cache_retention="in-memory", **ASK)
            time.sleep(0.6)
            self.assertEqual(metric(server, "millrace_kv_disk_records"), 0)
            server.chat([user("Another. " + STORY)], **ASK)
            self.wait_written(server)

    def test_4_the_folder_is_private_held_by_one_and_cleared_by_a_command(self):
        with self.server() as server:
            server.chat([user(STORY)], **ASK)
            self.wait_written(server)
            self.assertIn(self.folder, server.said)
            for path in [self.folder, *glob.glob(self.folder + "/*")]:
                self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700)
            with self.server() as other:
                self.assertIn("contexts on disk: off (another process uses", other.said)
                other.chat([user("Hello")], **ASK)
            self.assertIn("a server uses it", self.kv().stdout)
            refused = self.kv("clear")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("stop that server first", refused.stderr)
        shown = self.kv().stdout
        self.assertIn("tiny", shown)
        self.assertEqual(self.kv("clear", "-m", "nobody").returncode, 2)
        self.assertIn("removed", self.kv("clear", "-m", "tiny").stdout)
        self.assertIn("no contexts", self.kv().stdout)

    def test_5_what_cannot_be_is_said(self):
        os.mkdir(self.folder, 0o700)
        link = self.folder + "-link"
        os.symlink(self.folder, link)
        server = Server(MILLRACE, "--kv-disk", link, "--kv-disk-size", "1G", wait=False)
        server.is_up.wait(60)
        self.assertIn("off (cannot open the folder", server.said)
        server.stop()
        with self.server() as server:
            server.chat([user(STORY)], **ASK)
        (name,) = glob.glob(self.folder + "/*/model")
        os.remove(name)
        os.mkdir(name)  # cannot be written: the contexts are there all the same
        with self.server() as server:
            self.assertGreater(server.chat([user(STORY)], **ASK)["timings"]["cache_disk_n"], 0)
        with Server(MILLRACE, "--kv-disk", "off") as server:
            self.assertIn("contexts on disk: off (--kv-disk off)", server.said)
            self.assertEqual(metric(server, "millrace_kv_disk_up"), 0)

    def test_6_what_contexts_take_already_is_theirs(self):
        other = os.path.join(self.folder, "0" * 32)
        os.makedirs(other, 0o700)
        os.chmod(self.folder, 0o700)
        with open(other + "/00000001.kv", "wb") as file:
            file.truncate(8 << 40)  # as if all of it had been given back: it takes nothing
        with Server(MILLRACE, "--kv-disk", self.folder, "--kv-disk-size", "64M", "-c", "4096") as server:
            self.assertIn("up to 64 MiB", server.said)
            self.assertTrue(os.path.exists(other))
        with open(other + "/00000001.kv", "wb") as file:
            file.write(bytes(48 << 20))
        with Server(MILLRACE, "--kv-disk", self.folder, "--kv-disk-size", "64M", "-c", "4096") as server:
            self.assertFalse(os.path.exists(other))  # more than half of the size: it made room


if __name__ == "__main__":
    unittest.main()
