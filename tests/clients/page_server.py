"""A stand-in for `millrace serve`: the files of web/ under the server's CSP, and answers that a test scripts."""

import http.server
import json
import pathlib
import threading
import time

WEB = pathlib.Path(__file__).parents[2] / "web"
CSP = "default-src 'self'; frame-ancestors 'none'"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".svg": "image/svg+xml"}
USAGE = {"prompt_tokens": 1234, "completion_tokens": 56, "total_tokens": 1290,
         "prompt_tokens_details": {"cached_tokens": 1200}, "completion_tokens_details": {"reasoning_tokens": 7}}
ENGINE = {
    "model": "SmolLM2-135M-Instruct-Q8_0", "fingerprint": "fp_3c1a9e77d2", "uptime_s": 5025,
    "running": [
        {"id": "req-7f31", "session": "agent-12", "phase": "decode", "n_prompt": 2310, "n_cached": 2240, "n_done": 2310,
         "n_tokens": 128, "age_s": 3.4},
        {"id": "req-7f35", "session": "", "phase": "prefill", "n_prompt": 7000, "n_cached": 512, "n_done": 2560,
         "n_tokens": 0, "age_s": 0.8},
    ],
    "waiting": [{"id": "req-7f36", "session": "agent-3", "phase": "queued", "n_prompt": 900, "n_cached": 0, "n_done": 0,
                 "n_tokens": 0, "age_s": 0.2}],
    "step_ms": [8 + (i * 7919 % 13) / 4 + (30 if i % 37 == 5 else 0) for i in range(100)],
    "tokens_per_s": 412.7,
    "pages": {"total": 4096, "free": 1200, "cached": 2100, "in_use": 796},
    "tree": {"nodes": 214, "tokens": 61234, "depth": 9, "top": [
        {"tokens": 1890, "hits": 412, "text": "<|im_start|>system\nYou are a coding agent. You have these tools"},
        {"tokens": 640, "hits": 96, "text": "<|im_start|>system\n<img src=x onerror=alert(1)>"},
        {"tokens": 32, "hits": 11, "text": "<|im_start|>user\nSummarise"}]},
    "hit_rate": {"tokens_cached": 182340, "tokens_prompt": 203911},
}


def chunk(delta=None, finish=None, **more):
    """One event of a chat completion."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "tiny", "system_fingerprint": "fp_test"}
    return "data: " + json.dumps({**head, "choices": choices, **more}) + "\n\n"


def answer(*pieces, finish="stop", pause_s=0.0):
    """A whole answer: text pieces, or deltas as dicts."""
    yield ": keep-alive\n\n"
    yield chunk({"role": "assistant", "content": ""}, seed=99)
    for piece in pieces:
        time.sleep(pause_s)
        yield chunk({"content": piece} if isinstance(piece, str) else piece)
    yield chunk({}, finish)
    yield chunk(usage=USAGE)
    yield "data: [DONE]\n\n"


class PageServer:
    """`script(body)` gives the events of an answer, or (status, error message). `key`: what Bearer must say."""

    def __init__(self):
        outer = self
        self.script = lambda body: answer("Hello.")
        self.key = self.engine_status = None
        self.asked, self.polls, self.gone = [], 0, threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = self.path.split("?")[0]
                file = WEB / ("index.html" if path == "/" else path[1:])
                if path.count("/") == 1 and file.is_file():
                    return self.give(200, file.read_bytes(), TYPES[file.suffix])
                if path == "/v1/models":
                    return self.api(lambda: {"data": [{"id": "SmolLM2-135M-Instruct-Q8_0", "max_model_len": 8192}]})
                if path == "/debug/engine":
                    outer.polls += 1
                    if outer.engine_status:
                        return self.error(outer.engine_status, "no")
                    return self.api(lambda: ENGINE)
                self.error(404, "no such route")

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not self.allowed():
                    return self.error(401, "Incorrect API key provided.")
                outer.asked.append(body)
                events = outer.script(body)
                if isinstance(events, tuple):
                    return self.error(*events)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    for event in events:
                        self.wfile.write(event.encode() if isinstance(event, str) else event)
                        self.wfile.flush()
                except OSError:
                    outer.gone.set()

            def allowed(self):
                return outer.key is None or self.headers.get("Authorization") == f"Bearer {outer.key}"

            def api(self, make):
                if not self.allowed():
                    return self.error(401, "Incorrect API key provided.")
                self.give(200, json.dumps(make()).encode(), "application/json")

            def error(self, status, message):
                self.give(status, json.dumps({"error": {"message": message}}).encode(), "application/json")

            def give(self, status, body, kind):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", CSP)
                self.send_header("X-Content-Type-Options", "nosniff")
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *args: None  # clients that leave early are meant
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
