"""replay and job as clients of servers that cannot be trusted: whatever comes back, they end soon, with a reason, in little
memory, and without a byte on the terminal that would do something there.
Usage: hostile_server_test.py MILLRACE [UNITTEST ARGS]"""

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

MILLRACE = os.path.abspath(sys.argv.pop(1))
PATIENCE_S = 60
MEMORY_BYTES = 1 << 30
with open(MILLRACE, "rb") as program:
    IS_SANITIZED = b"__asan_init" in program.read()  # its shadow memory alone is terabytes: no limit can be set
TRACE = ('{"trace": 1, "name": "t", "seed": 1}\n'
         '{"session": "a", "turns": [{"words": 3, "answer": 2}, {"words": 3, "answer": 2}]}\n')


class Fake:
    """A server that gives each path the same bytes again and again; a function writes what it likes."""

    def __init__(self, answers):
        self.answers, self.heads = answers, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.run, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while request := self.read(connection):
                    path = request.split(b" ")[1].decode()
                    answer = next((a for start, a in self.answers.items() if path.startswith(start)), json_answer({}, 404))
                    if callable(answer):
                        return answer(connection)
                    connection.sendall(answer)
            except OSError:
                pass

    def read(self, connection):
        data = b""
        while b"\r\n\r\n" not in data:
            if not (part := connection.recv(65536)):
                return b""
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        self.heads.append(head.decode())
        lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
        while len(body) < sum(lengths):
            body += connection.recv(65536)
        return head


def json_answer(value, status=200):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def stream(*events, end="\n\n"):
    body = "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}{end}" for event in events).encode()
    return (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))


def endless(start, piece):
    def write(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + start)
        while True:
            connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
    return write


TEXT = {"choices": [{"delta": {"content": "hello"}}]}


def usage(prompt=10, cached=0, answer=2):
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": answer,
                                     "prompt_tokens_details": {"cached_tokens": cached}}}


class Client(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.trace = os.path.join(self.home.name, "t.jsonl")
        with open(self.trace, "w") as file:
            file.write(TRACE)

    def tearDown(self):
        self.home.cleanup()

    def run_millrace(self, *args, expect=(1,), **environment):
        def bound():
            if IS_SANITIZED:
                return
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        ran = subprocess.run([MILLRACE, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, preexec_fn=bound,
                             env={"HOME": self.home.name, "PATH": os.environ["PATH"], **environment})
        self.assertIn(ran.returncode, expect, (args, ran))
        self.assertNotIn(b"\x1b", ran.stdout + ran.stderr)
        if expect == (1,):
            self.assertTrue(ran.stderr.startswith(b"millrace: "), ran)
            self.assertLess(len(ran.stderr), 2000)
        return ran.stdout.decode() + ran.stderr.decode()


class Replay(Client):
    def replay(self, answer, expect=(1,), models=json_answer({"data": [{"id": "the-model"}]}), **environment):
        with Fake({"/v1/models": models, "/v1/chat/completions": answer}) as self.fake:
            return self.run_millrace("replay", self.trace, "--url", self.fake.url, "--no-store", expect=expect, **environment)

    def test_a_server_of_another_kind(self):
        """Other ends of lines, no list of models, events without the parts that we send."""
        for answer in (stream(TEXT, usage(), "[DONE]"), stream(TEXT, usage(), "[DONE]", end="\r\n\r\n"),
                       stream({"choices": None}, {"choices": [{"delta": None}]}, {"id": 1, "error": None}, TEXT, usage())):
            for models in (json_answer({"data": [{"id": "x"}]}), json_answer({}, 404), json_answer(b"no json"), json_answer([])):
                self.assertIn("turns with a history", self.replay(answer, expect=(0,), models=models))

    def test_a_key(self):
        self.replay(stream(TEXT, usage()), expect=(0,), MILLRACE_REPLAY_API_KEY="secret-1")
        self.assertTrue(self.fake.heads)
        for head in self.fake.heads:
            self.assertIn("Authorization: Bearer secret-1", head)
        self.replay(stream(TEXT, usage()), expect=(2,), MILLRACE_REPLAY_API_KEY="a\r\nX-Evil: 1")

    def test_events_that_are_none(self):
        for event in ("{", "[]", "1", '{"choices": [1]}', '{"choices": [[]]}', '{"choices": {"a": 1}}', '{"choices": [{"delta": []}]}',
                      '{"choices": [{"delta": {"content": 7}}]}', '{"error": "\\u001b[2J"}', "\x1b[2J", '{"usage": []}'):
            self.replay(stream(event))

    def test_usage_that_cannot_be_true(self):
        for wrong in (usage(prompt=-5), usage(prompt=2 ** 63 - 1), usage(prompt=2 ** 64 - 1), usage(cached=11), usage(cached=-1),
                      usage(answer=2 ** 62), usage(answer=-1)):
            self.assertIn("cannot be true", self.replay(stream(TEXT, wrong)))
        self.assertIn("no usage", self.replay(stream(TEXT)))
        self.assertIn("no usage", self.replay(stream(TEXT, usage(prompt="many"))))

    def test_answers_that_do_not_end(self):
        piece = b"x" * (1 << 20)
        self.assertIn("too long", self.replay(endless(b"", piece)))
        self.assertIn("too long", self.replay(endless(b"", b"data: " + piece + b"\n")))
        event = b"data: " + json.dumps({"choices": [{"delta": {"content": "x" * 100_000}}]}).encode() + b"\n\n"
        self.assertIn("too long", self.replay(endless(b"", event)))

        def head(connection):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while True:
                connection.sendall(b"X-Header: " + piece)
        self.replay(head)

    def test_refusals_and_garbage(self):
        for answer in (json_answer({"error": {"message": "\x1b[2Jno"}}, 500), json_answer(b"\x00\x1b" * 10_000, 403),
                       b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", lambda connection: connection.close(),
                       lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort")):
            self.replay(answer)


class Job(Client):
    def job(self, answers, *args, expect=(1,)):
        with Fake(answers) as fake:
            return self.run_millrace("job", *args, "--url", fake.url, expect=expect)

    def test_answers_that_are_none(self):
        for body in (b"", b"{", b"\x1b[2J", b"7", b'"x"', b"[]", b"null"):
            for args in (("list",), ("show", "job_1"), ("cancel", "job_1"), ("submit", "-p", "Hi")):
                self.job({"/": json_answer(body)}, *args, expect=(0, 1))

    def test_words_that_would_move_the_cursor(self):
        evil = {"id": "\x1b[2J", "status": "\x1b]0;x\x07", "model": ["\x1b"], "tokens": {"a": "\x1b"}, "stale_because": ["\x1b", 7],
                "error": {"message": "\x1b[2J"}, "ended_at": 1}
        self.job({"/": json_answer(evil)}, "show", "job_1", expect=(0,))
        self.job({"/": json_answer({"data": [evil, 7, None]})}, "list", expect=(0,))
        self.job({"/": json_answer({"error": {"message": "\x1b[2J"}}, 400)}, "list", expect=(2,))
        event = stream({"choices": [{"delta": {"content": "\x1b[2Jhello"}}]})
        said = self.job({"/v1/jobs/job_1/events": event, "/v1/jobs/job_1": json_answer({**evil, "status": "completed"})},
                        "follow", "job_1", expect=(0,))
        self.assertIn("hello", said)

    def test_answers_that_do_not_end(self):
        piece = b"x" * (1 << 20)
        self.job({"/": endless(b"", piece)}, "show", "job_1")
        for start in (b"", b"data: "):
            self.job({"/v1/jobs/job_1/events": endless(b"", start + piece)}, "follow", "job_1")

    def test_deleted(self):
        said = self.job({"/": json_answer({"id": "job_1", "object": "job.deleted", "deleted": True})}, "delete", "job_1", expect=(0,))
        self.assertEqual(said, "job_1 is deleted\n")


if __name__ == "__main__":
    unittest.main()
