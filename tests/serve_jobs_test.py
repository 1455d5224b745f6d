"""Jobs over the server's sockets: they survive SIGKILL at any moment, are followed without a gap, belong to one key.
Usage: serve_jobs_test.py MILLRACE [UNITTEST ARGS]; MILLRACE_SEED moves the moments."""

import http.client
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import unittest

from serving import PATIENCE_S, Server, read_numbered_events

MILLRACE = os.path.abspath(sys.argv.pop(1))
ENDED = ("completed", "failed", "cancelled")
RNG = random.Random(int(os.environ.get("MILLRACE_SEED", "7")))


def story(n, **fields):
    """A request whose answer is long and the same every time."""
    return {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": n, "ignore_eos": True, "seed": 5,
            "temperature": 1.0, **fields}


class Jobs:
    """A folder of jobs, and the server that has it now."""

    def __init__(self, folder, *args, **options):
        self.folder, self.args, self.options = folder, args, options
        self.server = None
        self.start()

    def start(self):
        self.server = Server(MILLRACE, "--jobs", self.folder, *self.args, **self.options)

    def kill(self):
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()
        self.server.stop()

    def submit(self, body, expect=202, **headers):
        status, job = self.server.ask("/v1/jobs", body, **headers)
        assert status == expect, (status, job)
        return job

    def show(self, job, with_tokens=True):
        status, body = self.server.ask(f"/v1/jobs/{job['id']}" + ("?include=token_ids" if with_tokens else ""))
        assert status == 200, body
        return body

    def act(self, job, action, expect=200):
        status, body = self.server.ask(f"/v1/jobs/{job['id']}/{action}", b"", method="POST")
        assert status == expect, (status, body)
        return body

    def wait(self, job, what=ENDED):
        deadline = time.monotonic() + PATIENCE_S
        while (shown := self.show(job, with_tokens=False))["status"] not in what:
            assert time.monotonic() < deadline, shown
            time.sleep(0.02)
        return self.show(job)


class Follower(threading.Thread):
    """Reads the events of a job to their end, however often the server goes away."""

    def __init__(self, jobs, job):
        super().__init__(daemon=True)
        self.jobs, self.job = jobs, job
        self.events, self.n_connections, self.failure = [], 0, None
        self.start()

    def run(self):
        try:
            self.follow()
        except Exception as failure:
            self.failure = failure

    def follow(self):
        deadline = time.monotonic() + 4 * PATIENCE_S
        while time.monotonic() < deadline:
            headers = {"Last_Event_ID": str(self.events[-1][0])} if self.events else {}
            reply = None
            try:
                reply = self.jobs.server.send(f"/v1/jobs/{self.job['id']}/events", **headers)
                if reply.status == 503:  # it is stopping
                    raise OSError
                assert reply.status == 200, reply.read()
                self.n_connections += 1
                for event in read_numbered_events(reply):
                    self.events.append(event)
                    if event[2] == "[DONE]":
                        return
            except (OSError, ValueError, http.client.HTTPException):
                pass
            finally:
                if reply is not None:
                    reply.connection.close()
            time.sleep(0.01)
        raise AssertionError("the job did not end")

    def text(self):
        ids = [id for id, _, _ in self.events]
        assert ids == list(range(ids[0], ids[0] + len(ids))), "events are missing, or came twice"
        chunks = [json.loads(data) for _, _, data in self.events[:-1]]
        return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])


def alone(n, **fields):
    """What the same request gives where nothing interrupts it."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = Jobs(os.path.join(folder, "jobs"))
        try:
            return jobs.wait(jobs.submit(story(n, **fields)))
        finally:
            jobs.server.stop()


class Interrupted(unittest.TestCase):
    def check(self, n, n_kills, **fields):
        whole = alone(n, **fields)
        with tempfile.TemporaryDirectory() as folder:
            jobs = Jobs(os.path.join(folder, "jobs"))
            try:
                job = jobs.submit(story(n, **fields))
                follower = Follower(jobs, job)
                for _ in range(n_kills):
                    time.sleep(RNG.uniform(0.0, 0.12))
                    jobs.kill()
                    jobs.start()
                shown = jobs.wait(job)
                follower.join(PATIENCE_S)
                self.assertIsNone(follower.failure)
                self.assertEqual(shown["token_ids"], whole["token_ids"])
                self.assertEqual(shown["prompt_token_ids"], whole["prompt_token_ids"])
                self.assertEqual(shown["finish_reason"], whole["finish_reason"])
                message = shown["response"]["choices"][0]["message"]
                self.assertEqual(message, whole["response"]["choices"][0]["message"])
                self.assertEqual(follower.text(), message["content"])
                return shown
            finally:
                jobs.server.stop()

    def test_a_killed_job_is_the_uninterrupted_one(self):
        shown = self.check(3000, 6)
        self.assertEqual(shown["tokens"], 3000)
        self.assertGreater(shown["runs"], 1)

    def test_with_a_grammar_too(self):
        schema = {"type": "object", "required": ["words"], "additionalProperties": False, "properties": {
            "words": {"type": "array", "minItems": 60, "maxItems": 80, "items": {"type": "string", "maxLength": 12}}}}
        self.check(1200, 4, response_format={"type": "json_schema", "json_schema": {"name": "w", "schema": schema}})

    def test_sigterm_commits_and_the_next_start_goes_on(self):
        whole = alone(3000)
        with tempfile.TemporaryDirectory() as folder:
            jobs = Jobs(os.path.join(folder, "jobs"))
            job = jobs.submit(story(3000))
            follower = Follower(jobs, job)
            while jobs.show(job)["tokens"] == 0:
                time.sleep(0.01)
            start = time.monotonic()
            self.assertEqual(jobs.server.stop(), 0)
            self.assertLess(time.monotonic() - start, 20)  # nobody waits for who follows a job
            jobs.start()
            self.assertEqual(jobs.wait(job)["token_ids"], whole["token_ids"])
            self.assertIn("1 unfinished", jobs.server.said)
            follower.join(PATIENCE_S)
            self.assertEqual(follower.text(), whole["response"]["choices"][0]["message"]["content"])
            jobs.server.stop()


class OneServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.keys = tempfile.NamedTemporaryFile("w", suffix=".keys")
        cls.keys.write("alice:key-of-alice-0123456789\nbob:key-of-bob-0123456789\nadmin root:key-of-root-0123456789\n")
        cls.keys.flush()
        cls.folder = tempfile.TemporaryDirectory()
        cls.jobs = Jobs(os.path.join(cls.folder.name, "jobs"), "--api-key-file", cls.keys.name)
        cls.server = cls.jobs.server

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, path, body=None, who="alice", **options):
        return self.server.ask(path, body, Authorization=f"Bearer key-of-{who}-0123456789", **options)

    def submit(self, body, **headers):
        status, job = self.ask("/v1/jobs", body, **headers)
        self.assertEqual(status, 202, job)
        return job

    def wait(self, job, what=ENDED):
        deadline = time.monotonic() + PATIENCE_S
        while (shown := self.ask(f"/v1/jobs/{job['id']}")[1])["status"] not in what:
            self.assertLess(time.monotonic(), deadline, shown)
            time.sleep(0.02)
        return shown

    def test_any_of_the_three_apis(self):
        question = [{"role": "user", "content": "Hi"}]
        for body, api, kind in (
                ({"messages": question, "max_tokens": 4}, "chat_completions", "chat.completion"),
                ({"input": "Hi", "max_output_tokens": 4}, "responses", "response"),
                ({"system": "Be kind.", "messages": question, "max_tokens": 4}, "messages", "message"),
                ({"api": "messages", "messages": question, "max_tokens": 4}, "messages", "message")):
            job = self.submit(body)
            self.assertEqual(job["api"], api)
            answer = self.wait(job)["response"]
            self.assertEqual(answer.get("object", answer.get("type")), kind)

    def test_a_job_is_what_the_api_would_have_answered(self):
        job = self.wait(self.submit(story(24)))
        direct = self.ask("/v1/chat/completions", story(24))[1]
        self.assertEqual(job["response"]["choices"], direct["choices"])

    def test_an_idempotency_key(self):
        first = self.submit(story(4), Idempotency_Key="k1")
        status, again = self.ask("/v1/jobs", story(4), Idempotency_Key="k1")
        self.assertEqual((status, again["id"]), (202, first["id"]))
        self.assertEqual(self.ask("/v1/jobs", story(5), Idempotency_Key="k1")[0], 422)
        self.assertNotEqual(self.ask("/v1/jobs", story(4), who="bob", Idempotency_Key="k1")[1]["id"], first["id"])
        self.assertEqual(self.ask("/v1/jobs", story(4), Idempotency_Key="k" * 10_000)[0], 400)

    def test_anothers_job_does_not_exist(self):
        job = self.submit({**story(4), "user": "alice"})
        for path, method in (("", "GET"), ("/events", "GET"), ("/pause", "POST"), ("/cancel", "POST"), ("", "DELETE")):
            status, _ = self.ask(f"/v1/jobs/{job['id']}{path}", None if method == "GET" else b"", who="bob", method=method)
            self.assertEqual(status, 404, path)
        listed = self.ask("/v1/jobs?limit=100", who="bob")[1]["data"]
        self.assertNotIn(job["id"], [one["id"] for one in listed])

    def test_pause_resume_cancel_delete(self):
        job = self.submit(story(4000))
        path = f"/v1/jobs/{job['id']}"
        self.wait(job, ("running",))
        self.assertEqual(self.ask(f"{path}/pause", b"")[1]["status"], "paused")
        time.sleep(0.2)
        n_tokens = self.ask(path)[1]["tokens"]
        time.sleep(0.2)
        self.assertEqual(self.ask(path)[1]["tokens"], n_tokens)
        self.assertEqual(self.ask(f"{path}/resume", b"")[0], 200)
        self.wait(job, ("running", "completed"))
        self.assertEqual(self.ask(f"{path}/cancel", b"")[1]["status"], "cancelled")
        self.assertEqual(self.ask(f"{path}/cancel", b"")[0], 200)
        self.assertEqual(self.ask(f"{path}/resume", b"")[0], 409)
        reply = self.ask(f"{path}/restart", b"")
        self.assertEqual(reply[0], 202)
        self.assertEqual(self.wait(reply[1])["tokens"], 4000)
        self.assertEqual(self.ask(path, method="DELETE")[1]["deleted"], True)
        for there in (path, f"{path}/events"):
            self.assertEqual(self.ask(there)[0], 404)

    def test_racing_changes(self):
        job = self.submit(story(6000))
        path = f"/v1/jobs/{job['id']}"

        def push(action):
            for _ in range(20):
                status, body = self.ask(f"{path}/{action}", b"")
                assert status in (200, 409), (status, body)

        threads = [threading.Thread(target=push, args=(action,)) for action in ("pause", "resume", "pause", "resume")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.ask(path)[1]["status"] not in ENDED:
            self.ask(f"{path}/resume", b"")
        shown = self.wait(job)
        self.assertEqual((shown["status"], shown["tokens"]), ("completed", 6000))
        reference = self.wait(self.submit(story(6000)))
        self.assertEqual(shown["response"]["choices"], reference["response"]["choices"])

    def test_events_from_any_place(self):
        job = self.submit(story(40))
        self.wait(job)

        def events(suffix="", **headers):
            reply = self.server.send(f"/v1/jobs/{job['id']}/events{suffix}",
                                     Authorization="Bearer key-of-alice-0123456789", **headers)
            self.assertEqual(reply.status, 200)
            return list(read_numbered_events(reply))

        everything = events()
        self.assertEqual(everything[-1][2], "[DONE]")
        self.assertEqual(events("?after=7"), everything[7:])
        self.assertEqual(events(Last_Event_ID="12"), everything[12:])
        self.assertEqual(events(f"?after={2 ** 62}"), [])
        for bad in ("-1", "x", "1.5", str(2 ** 70)):
            self.assertEqual(self.ask(f"/v1/jobs/{job['id']}/events?after={bad}")[0], 400, bad)

    def test_what_is_no_job_is_refused(self):
        self.assertEqual(self.ask("/v1/jobs", b"{")[0], 400)
        self.assertEqual(self.ask("/v1/jobs", b"[]")[0], 400)
        self.assertEqual(self.ask("/v1/jobs", {**story(4), "api": "telepathy"})[0], 400)
        self.assertEqual(self.ask("/v1/jobs", {**story(4), "n": 2})[0], 400)
        self.assertEqual(self.ask("/v1/jobs", {**story(4), "logprobs": True})[0], 400)
        self.assertEqual(self.ask("/v1/jobs", b" " * (17 << 20))[0], 413)
        for id in ("job_", "job_" + "0" * 32, "job_" + "Z" * 32, "../../etc/passwd", "job_" + "0" * 32 + "'--"):
            self.assertIn(self.ask(f"/v1/jobs/{id}")[0], (400, 404), id)
        for query in ("limit=0", "limit=101", "limit=x", "after=nobody"):
            self.assertEqual(self.ask(f"/v1/jobs?{query}")[0], 400, query)

    def test_the_list_has_pages(self):
        made = [self.submit(story(1))["id"] for _ in range(3)]
        first = self.ask("/v1/jobs?limit=2")[1]
        self.assertEqual([job["id"] for job in first["data"]], made[:0:-1])
        self.assertTrue(first["has_more"])
        second = self.ask(f"/v1/jobs?limit=2&after={first['last_id']}")[1]
        self.assertEqual(second["data"][0]["id"], made[0])

    def test_metrics(self):
        self.wait(self.submit(story(8)))
        text = self.ask("/metrics", who="root")[1].decode()
        self.assertIn('millrace_jobs{state="completed"}', text)
        self.assertRegex(text, r"millrace_job_tokens_committed_total [1-9]")


class Stores(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.home.name, "jobs")

    def tearDown(self):
        self.home.cleanup()

    def check_refused(self, why, *args):
        """The server serves, takes no jobs, and says why."""
        with Server(MILLRACE, "--jobs", self.folder, *args) as server:
            self.assertTrue(server.chat("Hi")["choices"])
            for path, body in (("/v1/jobs", story(2)), ("/v1/jobs", None), ("/v1/responses", {"input": "Hi", "background": True})):
                status, reply = server.ask(path, body)
                self.assertEqual(status, 503, reply)
                self.assertIn(why, reply["error"]["message"])
            self.assertIn(why, server.said)

    def write(self, name, data):
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(data)

    def test_damaged_foreign_and_newer(self):
        self.write("jobs.db", b"this is no database" * 1000)
        self.check_refused("not a database of ours")
        os.remove(os.path.join(self.folder, "jobs.db"))
        with sqlite3.connect(os.path.join(self.folder, "jobs.db")) as database:
            database.execute("CREATE TABLE others(x)")
        self.check_refused("another program")
        os.remove(os.path.join(self.folder, "jobs.db"))
        Jobs(self.folder).server.stop()
        with sqlite3.connect(os.path.join(self.folder, "jobs.db")) as database:
            database.execute("PRAGMA user_version = 99")
        self.check_refused("schema 99")

    def test_folders_that_are_not_ours_alone(self):
        os.makedirs(self.folder, mode=0o700)
        os.chmod(self.folder, 0o755)
        self.check_refused("others may look into it")
        os.rmdir(self.folder)
        os.symlink("/tmp", self.folder)
        self.check_refused("symbolic link")
        os.remove(self.folder)
        self.write("jobs.db", b"")
        os.remove(os.path.join(self.folder, "jobs.db"))
        os.symlink(os.path.join(self.home.name, "elsewhere"), os.path.join(self.folder, "jobs.db"))
        self.check_refused("jobs.db")
        self.assertFalse(os.path.exists(os.path.join(self.home.name, "elsewhere")))

    def test_a_second_server_takes_none(self):
        jobs = Jobs(self.folder)
        self.check_refused("another server")
        jobs.server.stop()

    def test_off(self):
        with Server(MILLRACE, "--jobs", "off") as server:
            status, reply = server.ask("/v1/jobs", story(2))
            self.assertEqual(status, 503)
            self.assertIn("--jobs off", reply["error"]["message"])

    def test_finished_jobs_go_when_their_time_is_over(self):
        jobs = Jobs(self.folder)
        job = jobs.submit(story(4))
        jobs.wait(job)
        jobs.server.stop()
        jobs.args = ("--jobs-keep", "0")
        jobs.start()
        deadline = time.monotonic() + PATIENCE_S
        while jobs.server.ask(f"/v1/jobs/{job['id']}")[0] != 404:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        jobs.server.stop()

    def test_a_changed_root_makes_it_stale(self):
        jobs = Jobs(self.folder)
        job = jobs.submit(story(3000))
        while jobs.show(job)["tokens"] < 10:
            time.sleep(0.01)
        jobs.kill()
        jobs.args = ("-c", "8000")
        jobs.start()
        shown = jobs.show(job)
        self.assertEqual(shown["status"], "stale")
        self.assertIn("context", shown["stale_because"][0])
        self.assertIn("stale", jobs.act(job, "resume", 409)["error"]["message"])
        new = jobs.act(job, "restart", 202)
        self.assertNotEqual(new["id"], job["id"])
        self.assertEqual(jobs.show(new)["token_ids"][:10], shown["token_ids"][:10])
        finished = jobs.wait(new)
        self.assertEqual(finished["tokens"], 3000)
        jobs.kill()
        jobs.args = ()
        jobs.start()  # where it came from it is not stale
        self.assertEqual(jobs.wait(job)["token_ids"], finished["token_ids"])
        jobs.server.stop()

    def test_one_tenant_cannot_push_out_another(self):
        keys = os.path.join(self.home.name, "keys")
        with open(keys, "w") as file:
            file.write("alice:key-of-alice-0123456789\nbob:key-of-bob-0123456789\n")
        server = Server(MILLRACE, "--jobs", self.folder, "--jobs-size", "100K", "--api-key-file", keys)

        def ask(who, path, body=None, **options):
            return server.ask(path, body, Authorization=f"Bearer key-of-{who}-0123456789", **options)

        def submit(who, n_bytes=0, expect=202):
            status, job = ask(who, "/v1/jobs", {**story(1), "user": "x" * n_bytes})
            self.assertEqual(status, expect, job)
            return job

        def wait(who, job):
            while ask(who, f"/v1/jobs/{job['id']}")[1]["status"] not in ENDED:
                time.sleep(0.02)

        with server:
            first = submit("alice")
            wait("alice", first)
            for _ in range(12):  # more than all together may take
                wait("bob", submit("bob", 15_000))
            self.assertEqual(ask("alice", f"/v1/jobs/{first['id']}")[0], 200)
            last = ask("bob", "/v1/jobs")[1]["data"]
            self.assertGreater(len(last), 3)
            submit("bob", 90_000, expect=429)  # which costs nobody anything
            self.assertEqual([job["id"] for job in ask("bob", "/v1/jobs")[1]["data"]], [job["id"] for job in last])
            # Jobs that rest count: half of it at most, and the other half is for others.
            paused, status = 0, 202
            while status == 202:
                status, job = ask("bob", "/v1/jobs", {**story(20_000), "user": "x" * 5_000})
                if status == 202:
                    self.assertEqual(ask("bob", f"/v1/jobs/{job['id']}/pause", b"")[0], 200)
                    paused += 1
            self.assertEqual(status, 429)
            self.assertLess(paused, 10)
            wait("alice", submit("alice", 15_000))

    def change(self, sql, *values):
        with sqlite3.connect(os.path.join(self.folder, "jobs.db")) as database:
            database.execute(sql, values)

    def test_changed_records_hurt_themselves_alone(self):
        jobs = Jobs(self.folder)
        made = [jobs.submit(story(6000, seed=i)) for i in range(9)]
        jobs.kill()
        how = json.loads(sqlite3.connect(os.path.join(self.folder, "jobs.db")).execute("SELECT how FROM jobs").fetchone()[0])
        for n, (field, value) in enumerate((
                ("how", json.dumps({**how, "dictated": [2 ** 31 - 1]})), ("how", json.dumps({**how, "max_tokens": 1e300})),
                ("how", "{}"), ("root", '{"model": 1, "model_hash": [], "numerics": {}}'), ("body", b"[]"), ("api", "telepathy"),
                ("prompt", b"\xff" * 8), ("n_tokens", 10 ** 9)), 1):
            self.change(f"UPDATE jobs SET {field} = ? WHERE n = ?", value, n)
        jobs.start()
        states = [jobs.wait(job, (*ENDED, "stale"))["status"] for job in made[:8]]
        self.assertEqual(states, ["failed"] * 3 + ["stale"] + ["failed"] * 4)
        self.assertEqual(len(jobs.server.ask("/v1/jobs")[1]["data"]), 9)
        for job in made[:8]:
            for suffix in ("", "?include=token_ids", "/events"):
                self.assertIn(jobs.server.ask(f"/v1/jobs/{job['id']}{suffix}")[0], (200, 409, 500, 503), job)
        self.assertEqual(jobs.wait(made[8])["tokens"], 6000)
        jobs.server.stop()

    def test_what_is_there_can_be_read_while_nothing_can_be_written(self):
        jobs = Jobs(self.folder)
        done = jobs.submit(story(20))
        text = jobs.wait(done)["response"]["choices"]
        running = jobs.submit(story(20_000))
        while jobs.show(running)["tokens"] == 0:
            time.sleep(0.01)
        blocker = sqlite3.connect(os.path.join(self.folder, "jobs.db"), isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        deadline = time.monotonic() + PATIENCE_S
        while "jobs stand still" not in jobs.server.said:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual(jobs.show(done)["response"]["choices"], text)
        self.assertEqual(len(jobs.server.ask("/v1/jobs")[1]["data"]), 2)
        reply = jobs.server.send(f"/v1/jobs/{done['id']}/events")
        self.assertEqual(list(read_numbered_events(reply))[-1][2], "[DONE]")
        reply.connection.close()
        jobs.submit(story(2), expect=503)
        jobs.act(running, "pause", expect=503)
        self.assertTrue(jobs.server.chat("Hi")["choices"])  # who wants no job notices nothing
        n_tokens = jobs.show(running)["tokens"]
        blocker.execute("ROLLBACK")
        while jobs.show(running)["tokens"] <= n_tokens:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        jobs.wait(jobs.submit(story(2)))
        jobs.server.stop()

    def test_a_stream_of_a_stale_job_says_why_it_has_no_end(self):
        jobs = Jobs(self.folder)
        job = jobs.submit({"input": "Tell me a story.", "max_output_tokens": 9000, "ignore_eos": True})
        jobs.kill()
        jobs.args = ("-c", "8000")
        jobs.start()
        for path in (f"/v1/jobs/{job['id']}/events", f"/v1/responses/{job['id'].replace('job', 'resp')}?stream=true"):
            status, reply = jobs.server.ask(path)
            self.assertEqual(status, 409, reply)
            self.assertIn("context", reply["error"]["message"])
            self.assertIn("/restart", reply["error"]["message"])
        jobs.server.stop()

    def test_a_context_stays_in_memory_where_that_is_asked_for(self):
        jobs = Jobs(self.folder)

        def n_records():
            jobs.server.wait_idle()
            return jobs.server.wait(lambda state: state["disk"]["waiting"] == 0, "pages wait for the disk")["disk"]["records"]

        jobs.wait(jobs.submit(story(300, prompt_cache_retention="in-memory")))
        time.sleep(1.5)
        self.assertEqual(n_records(), 0)
        jobs.wait(jobs.submit(story(300, seed=6)))
        deadline = time.monotonic() + PATIENCE_S
        while n_records() == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        jobs.server.stop()


if __name__ == "__main__":
    unittest.main()
