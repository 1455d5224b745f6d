"""A running `millrace serve` and the plainest client of it, for the tests that drive the server from outside."""

import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time

PATIENCE_S = 60  # others may use this machine


class Server:
    """The program on a free port, with the small model. `script`: what the model says, as a list of (match, say);
    a match of None says its line again and again."""

    def __init__(self, millrace, *args, script=None, environment=None, port=0, threads=1, kv_memory="1G", wait=True,
                 model="tiny"):
        self.home = tempfile.TemporaryDirectory()
        command = [millrace, "serve", "-m", model, "-t", str(threads), "--kv-memory", kv_memory, "--port", str(port), *args]
        if script is not None:
            command += ["--script", self.write_script(script)]
        environment = {"HOME": self.home.name, "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", **(environment or {})}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True)
        self.port, self.said = port, ""
        self.is_up = threading.Event()
        self.reader = threading.Thread(target=self.read_stderr, daemon=True)
        self.reader.start()
        if wait:
            self.wait_up()

    def write_script(self, script):
        path = os.path.join(self.home.name, "script.jsonl")
        with open(path, "w") as file:
            for match, say in script:
                file.write(json.dumps({"match": match or "", "say": say, "repeat": match is None}) + "\n")
        return path

    def read_stderr(self):
        for line in self.process.stderr:
            self.said += line
            if found := re.search(r"serving \S+ at http://[^ ]*:(\d+)", line):
                self.port = int(found[1])
                self.is_up.set()
        self.is_up.set()

    def wait_up(self):
        if not self.is_up.wait(PATIENCE_S) or "serving" not in self.said:
            self.stop()
            raise RuntimeError(f"millrace serve did not start: {self.said}")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self, kill=False):
        """Its exit status. `kill`: at once, in the middle of whatever it does."""
        self.process.kill() if kill else self.process.terminate()
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.reader.join(PATIENCE_S)
            self.process.stderr.close()
            self.home.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- requests

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)

    def send(self, path, body=None, method=None, **headers):
        """The reply, its body unread. `body`: bytes as they are, anything else as JSON."""
        connection = self.connect()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if body is None else "POST"), path, data, headers)
        reply = connection.getresponse()
        reply.connection = connection  # which would end with this call
        return reply

    def ask(self, path, body=None, method=None, **headers):
        """The status and the body, as JSON where it is."""
        reply = self.send(path, body, method, **headers)
        data = reply.read()
        reply.connection.close()
        is_json = reply.headers.get("Content-Type", "").startswith("application/json")
        return reply.status, json.loads(data) if is_json and data else data

    def chat(self, messages, **fields):
        """A chat completion that succeeds; `messages` may be one question."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        status, body = self.ask("/v1/chat/completions", {"messages": messages, "max_tokens": 16, **fields})
        assert status == 200, body
        return body

    def events(self, path, body, **headers):
        """The events of a stream as they come: (name, data)."""
        reply = self.send(path, {**body, "stream": True}, **headers)
        assert reply.status == 200, reply.read()
        yield from read_events(reply)
        reply.connection.close()

    def raw(self, data, shut=False):
        """What comes back for these bytes until the server closes the connection, or falls silent."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as connection:
            connection.sendall(data)
            if shut:
                connection.shutdown(socket.SHUT_WR)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)

    # ---- what the engine does

    def engine(self, **headers):
        return self.ask("/debug/engine", **headers)[1]

    def wait(self, what, why):
        """Until `what` of the engine's state holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not what(state := self.engine()):
            assert time.monotonic() < deadline, f"{why}: {state}"
            time.sleep(0.02)
        return state

    def wait_idle(self):
        return self.wait(lambda state: not state["running"] and not state["waiting"], "still busy")


def read_numbered_events(reply):
    """(id, name, data) of each event as it comes, the data as text."""
    id, name, data = None, None, []
    for line in reply:
        line = line.decode().rstrip("\r\n")
        if line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("id:"):
            id = int(line[3:])
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield id, name, "\n".join(data)
            id, name, data = None, None, []


def read_events(reply):
    for _, name, text in read_numbered_events(reply):
        yield name, text if text == "[DONE]" else json.loads(text)


def function(name, properties, **more):
    """A tool as OpenAI's clients define it."""
    parameters = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters, **more}}


def call(name, **arguments):
    """How the small model writes that it calls a tool."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
