"""A relay in front of a server that remembers what went through it: how the tests see what an agent program sends."""

import http.client
import http.server
import json
import threading


class Recorder:
    """`exchanges`: one dict per request, in the order of arrival: path, body as JSON, status, reply as text."""

    def __init__(self, port):
        outer = self
        self.exchanges, self.lock = [], threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def relay(self):
                data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                one = {"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()},
                       "body": json.loads(data) if data.startswith(b"{") else data.decode(errors="replace"), "reply": ""}
                with outer.lock:
                    outer.exchanges.append(one)
                self.forward(one, data)

            def forward(self, one, data):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
                headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")}
                connection.request(self.command, self.path, data or None, {**headers, "Host": f"127.0.0.1:{port}"})
                reply = connection.getresponse()
                one["status"] = reply.status
                self.send_response(reply.status)
                for name, value in reply.getheaders():
                    if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                        self.send_header(name, value)
                self.send_header("Connection", "close")
                self.end_headers()
                while part := reply.read1(65536):
                    one["reply"] += part.decode(errors="replace")
                    self.wfile.write(part)
                    self.wfile.flush()
                self.close_connection = True
                connection.close()

            do_GET = do_POST = do_HEAD = relay

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def asked(self, path):
        """The exchanges of a route, whatever query they had."""
        with self.lock:
            return [one for one in self.exchanges if one["path"].split("?")[0] == path]
