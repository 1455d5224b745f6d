"""`millrace chat`, `run` and `template` from outside: through a pipe, at a terminal, and what they promise of seeds
and stop strings. Usage: chat_test.py MILLRACE [UNITTEST ARGS]"""

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

MILLRACE = os.path.abspath(sys.argv.pop(1))


class Case(unittest.TestCase):
    """A home of its own, and one lane: others may use this machine."""

    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        self.environment = {"HOME": self.home, "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "TERM": "xterm"}

    def millrace(self, *args, said=""):
        ran = subprocess.run([MILLRACE, *args], env=self.environment, input=said, capture_output=True, text=True,
                             timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran


class Tiny(Case):
    """The model that comes with the program."""

    def setUp(self):
        super().setUp()
        self.assertIn("tiny", self.millrace("models", "--json").stdout)

    def run_tiny(self, *args):
        return self.millrace("run", "-m", "tiny", "-t", "1", "-p", "Once upon a time", *args).stdout

    def test_a_pipe_is_answered_once(self):
        ran = self.millrace("chat", "tiny", "-t", "1", "-n", "20", said="Tell me a story.\n")
        self.assertGreater(len(ran.stdout.strip()), 0)
        self.assertEqual(ran.stderr, "")

    def test_without_a_model_it_says_which_one_answers(self):
        ran = self.millrace("chat", "-t", "1", "-n", "20", said="Tell me a story.\n")
        self.assertGreater(len(ran.stdout.strip()), 0)
        self.assertRegex(ran.stderr, r"\Amillrace: .*using tiny.*\n\Z")

    def test_text_arrives_as_it_is_made(self):
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # which keeps writes apart
        with ours:
            ran = subprocess.Popen([MILLRACE, "run", "-m", "tiny", "-t", "1", "-p", "Once", "-n", "100", "--ignore-eos"],
                                   env=self.environment, stdout=its)
            its.close()
            parts = []
            while part := ours.recv(65536):
                parts.append(part)
        self.assertEqual(ran.wait(60), 0)
        self.assertEqual(parts[0], b"Once")
        self.assertGreater(len(parts), 50)

    def test_a_stop_string_ends_the_text_and_is_not_part_of_it(self):
        said = self.run_tiny("-n", "60", "--temperature", "0", "--ignore-eos", "--no-display-prompt").rstrip("\n")
        stop = said[len(said) // 2:][:4]
        stopped = self.run_tiny("-n", "60", "--temperature", "0", "--ignore-eos", "--no-display-prompt", "--stop", stop)
        self.assertEqual(stopped[:-1], said[:said.index(stop)])

    def test_a_seed_decides_the_text(self):
        texts = [self.run_tiny("-n", "40", "--temperature", "1", "--seed", seed) for seed in ("7", "7", "8")]
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_threads_and_chunks_change_nothing(self):
        prompt = "The miller walked along the river and looked for the wheel. " * 10
        texts = {self.millrace("run", "tiny", "-p", prompt, "-n", "30", "-t", lanes, "-b", rows, "--seed", "3").stdout
                 for lanes, rows in (("1", "128"), ("2", "128"), ("1", "7"), ("3", "33"))}
        self.assertEqual(len(texts), 1)


class Template(Case):
    def test_renders_messages(self):
        source = f"{self.home}/t.jinja"
        with open(source, "w") as file:
            file.write("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{{ bye }}")
        messages = json.dumps({"messages": [{"role": "user", "content": "hi"}], "chat_template_kwargs": {"bye": "so"}})
        command = ("template", "--template", source, "-")
        self.assertEqual(self.millrace(*command, said=messages).stdout, "[user] hi\nso")
        self.assertEqual(self.millrace(*command, "--set", "bye=1", said=messages).stdout, "[user] hi\n1")
        pieces = json.loads(self.millrace(*command, "--json", said=messages).stdout)["pieces"]
        self.assertEqual([p["text"] for p in pieces if not p["from_template"]], ["hi", "so"])

    def test_says_what_is_wrong(self):
        source = f"{self.home}/t.jinja"
        with open(source, "w") as file:
            file.write("{{ messages }}")
        for args, said, words in ((["--template", "/nowhere", "-"], "[]", "/nowhere"),
                                  (["--template", source, "-"], "{", "not JSON"),
                                  (["--template", source, "a", "b", "c"], "", "too many")):
            ran = subprocess.run([MILLRACE, "template", *args], env=self.environment, input=said, capture_output=True,
                                 text=True, timeout=60)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn(words, ran.stderr)


class Terminal(Case):
    """A program at a terminal of its own."""

    COLUMNS = 80

    def start(self, *args):
        # Under a sanitizer: libedit itself does not free all it allocates.
        self.environment["ASAN_OPTIONS"] = "detect_leaks=0"
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, self.COLUMNS, 0, 0))
            os.execve(MILLRACE, [MILLRACE, *args], self.environment)
        self.addCleanup(self.end)
        self.shown = b""

    def end(self):
        os.close(self.terminal)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def see(self, *wanted):
        """Reads until the screen showed all of `wanted`, one after the other, and forgets what came before."""
        deadline = time.monotonic() + 30
        for words in wanted:
            while words.encode() not in self.shown:
                left = deadline - time.monotonic()
                ready = select.select([self.terminal], [], [], max(left, 0))[0]
                self.assertTrue(ready, f"no {words!r} in {self.shown!r}")
                self.shown += os.read(self.terminal, 65536)
            self.shown = self.shown.split(words.encode(), 1)[1]

    def see_all(self):
        """What it shows until it ends, and its exit status."""
        with contextlib.suppress(OSError):  # how Linux says that the other side is closed
            while part := os.read(self.terminal, 65536):
                self.shown += part
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return self.shown, status

    def type(self, text):
        os.write(self.terminal, text.encode())

    def leave(self):
        """The exit status after Ctrl-D, which is pressed again: one that comes before a line is read is lost."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # it may have ended by now
                self.type("\x04")
            time.sleep(0.2)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
        self.fail("Ctrl-D does not end it")


class Chat(Terminal):
    """On a made model that, asked for the most likely token, talks without an end."""

    def chat(self, *args):
        model = f"{self.home}/model.gguf"
        self.millrace("make-model", "tiny-qwen3", model, "--type", "q8_0")
        self.start("chat", model, "-t", "1", "--temperature", "0", *args)

    def await_stream(self, question="hello"):
        self.type(f"{question}\n")
        self.see(f"{question}\r\n")
        before = len(self.shown)
        while len(self.shown) < before + 200:  # it streams, and would for a long while
            self.shown += os.read(self.terminal, 4096)

    def test_a_conversation(self):
        self.chat("-c", "65536")
        self.see("model.gguf, context 65536 tokens", "Ctrl-D ends", "> ")
        self.type("/help\n")
        self.see("/help", "/set", "> ")
        self.await_stream()
        self.type("\x03")
        self.see("(stopped)", "> ")  # the text before may look like the prompt
        self.type("/set max_tokens 3\n")
        self.see("max_tokens", "> ")
        self.type("again\n")
        self.see("again\r\n", "> ")
        self.assertEqual(self.leave(), 0)

    def test_ctrl_d_in_an_answer_does_nothing(self):
        self.chat("-c", "2048")
        self.see("> ")
        self.await_stream()
        self.type("\x04/se\x04t se\x04ed 77\x04")  # typed ahead, it is there when the answer ends
        self.see("the context of 2048 tokens is full", "/reset", "> ", "/set seed 77")
        self.type("\n")
        self.see("seed 77", "> ")

    def test_typing_disarms_ctrl_c(self):
        self.chat("-c", "2048")
        self.see("> ")
        self.type("\x03")
        self.see("Ctrl-C again to quit", "> ")
        self.type("half a line\x03")
        self.see("half a line", "^C", "> ")
        self.type("\x03")
        self.see("Ctrl-C again to quit", "> ")
        self.type("é\x7f\x03")  # typed and deleted
        self.see("Ctrl-C again to quit", "> ")
        self.type("/set seed\n")
        self.see("seed 0", "> ")
        self.type("\x03")
        self.see("Ctrl-C again to quit", "> ")
        self.type("\x03")
        self.assertEqual(self.see_all()[1], 0)

    def test_the_oldest_turns_make_room(self):
        self.chat("-c", "256", "--drop-oldest", "-n", "80")
        self.see("> ")
        for word in ("one", "two"):
            self.type(f"{word}\n")
            self.see(f"{word}\r\n")
            self.see("\x1b[?2004h")  # which asks for marked pastes: a prompt follows
        self.type("three\n")
        self.see("dropped the oldest turn", "256 tokens")


class Run(Terminal):
    COLUMNS = 40

    def test_a_terminal_gets_no_control_characters(self):
        self.start("run", "tiny", "-t", "1", "-n", "1", "-p", "a\x1b[31mred\x07 one")
        shown, status = self.see_all()
        self.assertEqual(status, 0)
        self.assertIn(b"a[31mred one", shown)
        self.assertNotIn(b"\x1b[31m", shown)
        piped = self.millrace("run", "tiny", "-t", "1", "-n", "1", "-p", "a\x1b[31mred\x07 one")
        self.assertIn("a\x1b[31mred\x07 one", piped.stdout)

    def test_answers_wrap_at_words(self):
        self.start("chat", "tiny", "-t", "1", "-n", "60", "--seed", "3", "-p", "Tell me a story.")
        shown, status = self.see_all()
        self.assertEqual(status, 0)
        lines = shown.decode().replace("\r", "").split("loading")[-1].split("\n")
        self.assertLessEqual(max(map(len, lines[1:])), 40)
        piped = self.millrace("chat", "tiny", "-t", "1", "-n", "60", "--seed", "3", "-p", "Tell me a story.")
        self.assertGreater(max(map(len, piped.stdout.split("\n"))), 40)
        words = piped.stdout.split()
        self.assertEqual(" ".join(lines).split()[-len(words):], words)


if __name__ == "__main__":
    unittest.main()
