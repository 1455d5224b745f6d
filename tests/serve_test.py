"""`millrace serve` from outside, with nothing but sockets: what each API answers, what it refuses and how, and what
it promises of seeds, cancelled requests and stopping. Usage: serve_test.py MILLRACE [UNITTEST ARGS]"""

import concurrent.futures
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
import unittest

from serving import Server, call, function, read_events

MILLRACE = os.path.abspath(sys.argv.pop(1))
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
WEATHER = function("get_weather", {"city": {"type": "string", "enum": ["Paris", "Rome"]}})
LONG = "The miller walked along the river and looked for the wheel of the old mill. "


def user(text):
    return {"role": "user", "content": text}


def text_of(completion):
    return completion["choices"][0]["message"]["content"]


class Plain(unittest.TestCase):
    """The small model as it is."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server(MILLRACE, "--alias", "team/tiny-v1")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()


class Chat(Plain):
    def test_an_answer_has_what_clients_read(self):
        answer = self.server.chat("Hello", temperature=0, model="whatever")
        self.assertRegex(answer["id"], r"\Achatcmpl-\w+\Z")
        self.assertEqual((answer["object"], answer["model"]), ("chat.completion", "whatever"))
        choice, usage = answer["choices"][0], answer["usage"]
        self.assertEqual((choice["message"]["role"], choice["finish_reason"]), ("assistant", "length"))
        self.assertGreater(len(text_of(answer)), 0)
        self.assertEqual(usage["completion_tokens"], 16)
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + 16)
        self.assertEqual(answer["system_fingerprint"], self.server.engine()["fingerprint"])
        self.assertIsInstance(answer["seed"], int)

    def test_a_stream_says_the_same_as_a_whole_answer(self):
        ask = {"messages": [user("Tell me a story.")], "max_tokens": 40, "seed": 5, "temperature": 1}
        whole = self.server.chat(**ask)
        events = [data for _, data in self.server.events(CHAT, {**ask, "stream_options": {"include_usage": True}})]
        self.assertEqual(events[-1], "[DONE]")
        usage, chunks = events[-2], events[:-2]
        self.assertEqual((usage["choices"], usage["usage"]["completion_tokens"]), ([], whole["usage"]["completion_tokens"]))
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        said = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
        self.assertEqual(said, text_of(whole))
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"])
        self.assertEqual({chunk["id"] for chunk in chunks}, {usage["id"]})

    def test_streams_may_pass_proxies(self):
        reply = self.server.send(CHAT, {"messages": [user("Hi")], "max_tokens": 2, "stream": True}, X_Request_Id="mine-7")
        self.assertTrue(reply.headers["Content-Type"].startswith("text/event-stream"))
        self.assertEqual((reply.headers["X-Accel-Buffering"], reply.headers["X-Request-Id"]), ("no", "mine-7"))
        self.assertTrue(reply.headers["X-Millrace-Fingerprint"])
        list(read_events(reply))
        reply.connection.close()

    def test_choices_differ_and_share_their_prompt(self):
        answer = self.server.chat("Tell me a story.", n=4, temperature=1.5, seed=1)
        self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2, 3])
        self.assertGreater(len({choice["message"]["content"] for choice in answer["choices"]}), 1)
        self.assertEqual(answer["usage"]["completion_tokens"], 64)
        first = self.server.chat("Tell me a story.", temperature=1.5, seed=1)
        self.assertEqual(text_of(first), text_of(answer))

    def test_a_stream_of_choices(self):
        ask = {"messages": [user("Tell me a story.")], "max_tokens": 8, "n": 3, "seed": 1}
        chunks = [data["choices"][0] for _, data in self.server.events(CHAT, ask) if data != "[DONE]"]
        for index in range(3):
            mine = [chunk for chunk in chunks if chunk["index"] == index]
            self.assertEqual(mine[0]["delta"]["role"], "assistant")
            self.assertEqual([c["finish_reason"] for c in mine if c["finish_reason"]], ["length"])

    def test_stop_strings_end_the_text_and_are_not_part_of_it(self):
        ask = {"messages": [user("Tell me a story.")], "max_tokens": 30, "temperature": 0, "ignore_eos": True}
        said = text_of(self.server.chat(**ask))
        stop = said[len(said) // 2:][:5]
        for stops in (stop, ["never said", stop]):
            answer = self.server.chat(**ask, stop=stops)
            self.assertEqual(text_of(answer), said[:said.index(stop)])
            self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        pieces = [d["choices"][0]["delta"].get("content", "") for _, d in self.server.events(CHAT, {**ask, "stop": stop})
                  if d != "[DONE]"]
        self.assertEqual("".join(pieces), said[:said.index(stop)])

    def test_logprobs(self):
        answer = self.server.chat("Hello", temperature=0, logprobs=True, top_logprobs=3, max_tokens=5)
        tokens = answer["choices"][0]["logprobs"]["content"]
        self.assertEqual(b"".join(bytes(token["bytes"]) for token in tokens).decode(), text_of(answer))
        for token in tokens:
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["top_logprobs"][0]["token"], token["token"])  # which temperature 0 takes
            self.assertLessEqual(token["logprob"], 0)
        self.assertEqual(self.server.ask(CHAT, {"messages": [user("x")], "top_logprobs": 3})[0], 400)

    def test_a_bias_forbids_a_token(self):
        answer = self.server.chat("Hello", temperature=0, logprobs=True, max_tokens=1)
        token = self.server.ask("/tokenize", {"content": answer["choices"][0]["logprobs"]["content"][0]["token"]})[1]["tokens"]
        other = self.server.chat("Hello", temperature=0, max_tokens=1, logit_bias={str(token[0]): -100})
        self.assertNotEqual(text_of(other), text_of(answer))

    def test_unknown_fields_are_ignored_and_known_ones_not_done_are_named(self):
        self.server.chat("Hi", max_tokens=1, store=True, some_new_field={"a": [1]}, user="me", service_tier="auto")
        for field in ({"audio": {"voice": "x"}}, {"functions": [{"name": "f"}]}, {"modalities": ["audio"]}):
            status, body = self.server.ask(CHAT, {"messages": [user("Hi")], **field})
            self.assertEqual(status, 400)
            self.assertIn(next(iter(field)), body["error"]["message"])

    def test_a_tool_choice_is_obeyed(self):
        other = function("other", {"n": {"type": "integer", "minimum": 0, "maximum": 9}})
        for choice in ("required", {"type": "function", "function": {"name": "get_weather"}}):
            answer = self.server.chat("Hello", tools=[WEATHER] if choice == "required" else [other, WEATHER],
                                      tool_choice=choice, parallel_tool_calls=False, max_tokens=60)
            made, = answer["choices"][0]["message"]["tool_calls"]
            self.assertEqual((made["type"], made["function"]["name"]), ("function", "get_weather"))
            self.assertIn(json.loads(made["function"]["arguments"])["city"], ("Paris", "Rome"))
            self.assertEqual(answer["choices"][0]["finish_reason"], "tool_calls")
        status, body = self.server.ask(CHAT, {"messages": [user("Hi")], "tool_choice": "required"})
        self.assertEqual((status, body["error"]["param"]), (400, "tool_choice"))

    def test_an_answer_keeps_to_its_schema(self):
        schema = {"type": "object", "properties": {"color": {"enum": ["red", "green"]}, "n": {"type": "integer", "minimum": 3,
                  "maximum": 12}, "tags": {"type": "array", "items": {"type": "string", "maxLength": 6}, "maxItems": 2}},
                  "required": ["color", "n", "tags"], "additionalProperties": False}
        form = {"type": "json_schema", "json_schema": {"name": "thing", "schema": schema, "strict": True}}
        for seed in range(3):
            said = json.loads(text_of(self.server.chat("A thing", response_format=form, max_tokens=120, seed=seed)))
            self.assertEqual(list(said), ["color", "n", "tags"])
            self.assertIn(said["color"], ("red", "green"))
            self.assertTrue(3 <= said["n"] <= 12 and len(said["tags"]) <= 2 and all(len(t) <= 6 for t in said["tags"]))
        said = self.server.chat("A thing", response_format={"type": "json_object"}, max_tokens=400, temperature=0)
        if said["choices"][0]["finish_reason"] == "stop":
            self.assertIsInstance(json.loads(text_of(said)), dict)

    def test_progress_on_request(self):
        ask = {"messages": [user(LONG * 40)], "max_tokens": 2, "return_progress": True}
        shown = [data["prompt_progress"] for _, data in self.server.events(CHAT, ask)
                 if data != "[DONE]" and "prompt_progress" in data]
        self.assertGreater(len(shown), 2)
        self.assertEqual(shown[-1]["processed"], shown[-1]["total"])


class Messages(Plain):
    def test_an_answer(self):
        status, answer = self.server.ask(f"{MESSAGES}?beta=true", {"model": "claude-x", "max_tokens": 5, "temperature": 0,
                                         "system": [{"type": "text", "text": "Be kind."}], "messages": [user("Hello")]},
                                         anthropic_version="2023-06-01", anthropic_beta="a,b", x_api_key="any")
        self.assertEqual((status, answer["type"], answer["role"], answer["model"]), (200, "message", "assistant", "claude-x"))
        self.assertEqual((answer["stop_reason"], answer["usage"]["output_tokens"]), ("max_tokens", 5))
        self.assertEqual(answer["content"][0]["type"], "text")

    def test_a_stream(self):
        ask = {"max_tokens": 5, "temperature": 0, "messages": [user("Hello")]}
        whole = self.server.ask(MESSAGES, ask)[1]
        events = list(self.server.events(MESSAGES, ask))
        names = [name for name, _ in events if name not in ("ping", "content_block_delta")]
        self.assertEqual(names, ["message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"])
        self.assertTrue(all(data["type"] == name for name, data in events))
        start = events[0][1]["message"]["usage"]
        self.assertGreater(start["input_tokens"] + start["cache_read_input_tokens"], 5)
        said = "".join(d["delta"]["text"] for n, d in events if n == "content_block_delta")
        self.assertEqual(said, whole["content"][0]["text"])

    def test_stop_sequences(self):
        ask = {"max_tokens": 30, "temperature": 0, "messages": [user("Tell me a story.")]}
        stop = self.server.ask(MESSAGES, ask)[1]["content"][0]["text"][20:25]
        answer = self.server.ask(MESSAGES, {**ask, "stop_sequences": [stop]})[1]
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]), ("stop_sequence", stop))

    def test_tokens_are_counted(self):
        ask = {"messages": [user("Hello")], "system": "Be kind.", "tools": [{"name": "f", "input_schema": {"type": "object"}}]}
        status, counted = self.server.ask(f"{MESSAGES}/count_tokens", ask)
        self.assertEqual(status, 200, counted)
        usage = self.server.ask(MESSAGES, {**ask, "max_tokens": 1})[1]["usage"]
        self.assertEqual(counted["input_tokens"], usage["input_tokens"] + usage["cache_read_input_tokens"] +
                         usage["cache_creation_input_tokens"])

    def test_the_answer_goes_on_from_its_beginning(self):
        ask = {"max_tokens": 5, "temperature": 0, "messages": [user("Hello"), {"role": "assistant", "content": "Once upon a"}]}
        self.assertEqual(self.server.ask(MESSAGES, ask)[0], 200)


class Routes(Plain):
    def test_models(self):
        listed = self.server.ask("/v1/models")[1]
        self.assertEqual([model["id"] for model in listed["data"]], ["tiny", "team/tiny-v1"])
        for name in ("team/tiny-v1", "team%2Ftiny-v1", "any/other/name"):
            status, model = self.server.ask(f"/v1/models/{name}")
            self.assertEqual((status, model["object"], model["max_model_len"]), (200, "model", 65536))
            self.assertEqual(model["id"], name.replace("%2F", "/"))

    def test_text_to_tokens_and_back(self):
        counted = self.server.ask("/tokenize", {"content": "The mill, früher 🙂"})[1]
        tokens = counted["tokens"]
        self.assertGreater(len(tokens), 3)
        self.assertEqual(counted["count"], len(tokens))
        self.assertEqual(self.server.ask("/detokenize", {"tokens": tokens})[1]["content"], "The mill, früher 🙂")
        for bad in ([-1], [10**6], ["a"], [1.5], [None], 7, None):
            self.assertEqual(self.server.ask("/detokenize", {"tokens": bad})[0], 400, bad)
        self.assertEqual(self.server.ask("/tokenize", {"content": 3})[0], 400)

    def test_the_prompt_is_shown(self):
        shown = self.server.ask("/apply-template", {"messages": [user("Hello")], "tools": [WEATHER]})[1]
        self.assertIn("get_weather", shown["prompt"])
        self.assertEqual(shown["n_tokens"], self.server.chat("Hello", tools=[WEATHER], max_tokens=1)["usage"]["prompt_tokens"])

    def test_health_version_and_metrics(self):
        self.assertEqual(self.server.ask("/health"), (200, {"status": "ok"}))
        self.assertRegex(self.server.ask("/version")[1]["version"], r"\A\d+\.\d+")
        self.server.chat("Hi", max_tokens=2)
        deadline = time.monotonic() + 10
        values = self.metrics()
        for name in ("vllm:num_requests_running", "vllm:prompt_tokens_total", "vllm:generation_tokens_total"):
            self.assertIn(name, values)
        # The engine publishes its counts when it has nothing else to do, which may be after the answer.
        while values["vllm:generation_tokens_total"] == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
            values = self.metrics()
        self.assertGreater(values["vllm:generation_tokens_total"], 0)

    def metrics(self):
        reply = self.server.send("/metrics")
        self.assertTrue(reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        lines = reply.read().decode().splitlines()
        reply.connection.close()
        values = {}
        for line in lines:
            if not line.startswith("#"):
                name, value = re.fullmatch(r"([a-z0-9_:]+(?:\{[^}]*\})?) (\S+)", line).groups()
                values[name.split("{")[0]] = float(value)
        return values

    def test_the_page(self):
        reply = self.server.send("/")
        self.assertIn(b"<html", reply.read())
        self.assertEqual(reply.headers["Content-Security-Policy"], "default-src 'self'; frame-ancestors 'none'")
        reply.connection.close()

    def test_what_is_not_here_says_so(self):
        for path, status in (("/v1/embeddings", 501), ("/v1/nowhere", 404), (f"{MESSAGES}/nowhere", 404)):
            self.assertEqual(self.server.ask(path, {})[0], status, path)
        self.assertEqual(self.server.ask(CHAT)[0], 405)


class Errors(Plain):
    def test_each_api_has_its_own_shape(self):
        for path in (CHAT, "/v1/nowhere", "/tokenize"):
            error = self.server.ask(path, b"{")[1]["error"]
            self.assertEqual(set(error), {"message", "type", "param", "code"}, path)
        status, error = self.server.ask(MESSAGES, {"messages": [user("Hi")]})
        self.assertEqual((status, error["type"], error["error"]["type"]), (400, "error", "invalid_request_error"))
        self.assertIn("max_tokens", error["error"]["message"])

    def test_too_long_a_prompt(self):
        with Server(MILLRACE, "-c", "256") as server:
            for stream in (False, True):
                status, error = server.ask(CHAT, {"messages": [user(LONG * 50)], "stream": stream})
                self.assertEqual((status, error["error"]["code"]), (400, "context_length_exceeded"))
                self.assertIn("256 tokens", error["error"]["message"])
            status, error = server.ask(MESSAGES, {"messages": [user(LONG * 50)], "max_tokens": 5})
            self.assertEqual((status, error["error"]["type"]), (400, "invalid_request_error"))
            answer = server.chat("Tell me a story.", ignore_eos=True, max_tokens=10**12)
            self.assertEqual((answer["usage"]["total_tokens"], answer["choices"][0]["finish_reason"]), (256, "length"))

    def test_foreign_pages_and_hosts(self):
        self.assertEqual(self.server.ask(CHAT, {"messages": [user("Hi")]}, Origin="https://evil.example")[0], 403)
        self.assertEqual(self.server.ask(CHAT, {"messages": [user("Hi")]}, Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(self.server.ask("/v1/models", Host="evil.example")[0], 421)
        self.assertEqual(self.server.ask("/v1/models", Host=f"localhost:{self.server.port}")[0], 200)
        own = f"http://127.0.0.1:{self.server.port}"
        self.assertEqual(self.server.ask("/v1/models", Origin=own)[0], 200)


class Scripted(unittest.TestCase):
    """Where the model's words are given."""

    SCRIPT = [("Both?", "I look." + call("get_weather", city="Paris") + "\n" + call("get_weather", city="Rome")),
              ("Both!", call("get_weather", city="Paris") + "\n" + call("get_weather", city="Rome")),
              ("One", call("get_weather", city="Ro\"me\n🙂")), ("Broken", '<tool_call>\n{"nam'),
              ("Cut", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Pa'),
              (None, "It is fine.")]

    @classmethod
    def setUpClass(cls):
        cls.server = Server(MILLRACE, script=cls.SCRIPT)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def ask(self, text, **fields):
        return self.server.chat(text, tools=[WEATHER], max_tokens=200, **fields)

    def test_calls_and_their_results(self):
        first = self.ask("Both?")
        message = first["choices"][0]["message"]
        self.assertEqual((message["content"].strip(), first["choices"][0]["finish_reason"]), ("I look.", "tool_calls"))
        self.assertEqual([json.loads(made["function"]["arguments"]) for made in message["tool_calls"]],
                         [{"city": "Paris"}, {"city": "Rome"}])
        ids = [made["id"] for made in message["tool_calls"]]
        self.assertEqual(len(set(ids)), 2)
        results = [{"role": "tool", "tool_call_id": one, "content": "sunny"} for one in ids]
        second = self.ask([user("Both?"), message, *results])
        self.assertEqual((text_of(second), second["choices"][0]["finish_reason"]), ("It is fine.", "stop"))

    def test_streamed_calls(self):
        ask = {"messages": [user("Both!")], "tools": [WEATHER], "max_tokens": 200}
        chunks = [data["choices"][0] for _, data in self.server.events(CHAT, ask) if data != "[DONE]"]
        made = {}
        for delta in (part for chunk in chunks for part in chunk["delta"].get("tool_calls", [])):
            one = made.setdefault(delta["index"], {"arguments": ""})
            self.assertEqual("id" in delta, "id" not in one)  # once, and first
            one.update({key: delta[key] for key in ("id", "type") if key in delta})
            one["name"] = delta["function"].get("name", one.get("name"))
            one["arguments"] += delta["function"].get("arguments", "")
        self.assertEqual([json.loads(made[i]["arguments"]) for i in (0, 1)], [{"city": "Paris"}, {"city": "Rome"}])
        self.assertEqual({one["name"] for one in made.values()}, {"get_weather"})
        self.assertEqual(chunks[-1]["finish_reason"], "tool_calls")

    def test_anthropics_calls(self):
        tool = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}
        ask = {"messages": [user("One")], "tools": [tool], "max_tokens": 200}
        events = list(self.server.events(MESSAGES, ask))
        block = next(data["content_block"] for name, data in events if name == "content_block_start")
        self.assertEqual((block["type"], block["name"]), ("tool_use", "get_weather"))
        said = "".join(d["delta"]["partial_json"] for n, d in events if n == "content_block_delta")
        self.assertEqual(json.loads(said), {"city": "Ro\"me\n🙂"})
        delta = next(data for name, data in events if name == "message_delta")
        self.assertEqual(delta["delta"]["stop_reason"], "tool_use")
        history = [user("One"), {"role": "assistant", "content": [{**block, "input": json.loads(said)}]},
                   user([{"type": "tool_result", "tool_use_id": block["id"], "content": [{"type": "text", "text": "ok"}]}])]
        status, answer = self.server.ask(MESSAGES, {**ask, "messages": history})
        self.assertEqual((status, answer["content"][0]["text"], answer["stop_reason"]), (200, "It is fine.", "end_turn"))

    def test_a_broken_call_is_text_and_locks_nobody_out(self):
        broken = self.ask("Broken")
        self.assertNotIn("tool_calls", broken["choices"][0]["message"])
        self.assertEqual(broken["choices"][0]["finish_reason"], "stop")
        cut = self.ask("Cut")["choices"][0]["message"]
        made, = cut["tool_calls"]
        self.assertEqual(made["function"]["arguments"], '{"city": "Pa')
        history = [user("Hi"), cut, {"role": "tool", "tool_call_id": made["id"], "content": "bad arguments"}]
        self.assertEqual(text_of(self.ask(history)), "It is fine.")


class Keys(unittest.TestCase):
    def test_who_may_do_what(self):
        keys = "alice:key-alice-0123456789abcdef,admin ops:key-ops-0123456789abcdef0,bob:key-bob-0123456789abcdef0"
        alice, ops, bob = (f"Bearer {part.split(':')[1]}" for part in keys.split(","))
        with Server(MILLRACE, environment={"MILLRACE_API_KEYS": keys}) as server:
            self.assertEqual([server.ask(path)[0] for path in ("/health", "/")], [200, 200])
            for path in ("/v1/models", "/metrics", "/debug/engine", "/debug/kv", "/version"):
                self.assertEqual(server.ask(path)[0], 401, path)
                self.assertEqual(server.ask(path, Authorization="Bearer key-alice-0123456789abcdeX")[0], 401, path)
            status, error = server.ask(CHAT, {"messages": [user("Hi")]})
            self.assertEqual((status, error["error"]["code"]), (401, "invalid_api_key"))
            status, error = server.ask(MESSAGES, {"messages": [user("Hi")], "max_tokens": 1})
            self.assertEqual((status, error["error"]["type"]), (401, "authentication_error"))
            for path in ("/metrics", "/debug/engine", "/debug/kv"):
                self.assertEqual(server.ask(path, Authorization=alice)[0], 403)
                self.assertEqual(server.ask(path, Authorization=ops)[0], 200)
            ask = {"messages": [user(LONG)], "max_tokens": 1}
            cached = [server.ask(CHAT, ask, Authorization=key)[1]["usage"]["prompt_tokens_details"]["cached_tokens"]
                      for key in (alice, alice, bob)]
            self.assertGreater(cached[1], 10)
            self.assertEqual((cached[0], cached[2]), (0, 0))  # what one key's cache holds, no other can find out
            answer = server.ask(MESSAGES, ask, x_api_key=bob.removeprefix("Bearer "))
            self.assertEqual(answer[0], 200)
            self.assertNotIn("0123456789abcdef", server.said)

    def test_an_open_address_needs_a_key(self):
        with self.assertRaisesRegex(RuntimeError, "--api-key-file"):
            Server(MILLRACE, "--host", "0.0.0.0")

    def test_names_are_checked_on_request(self):
        with Server(MILLRACE, "--strict-models", "--alias", "a/b") as server:
            server.chat("Hi", model="a/b", max_tokens=1)
            status, error = server.ask(CHAT, {"model": "gpt-x", "messages": [user("Hi")]})
            self.assertEqual((status, error["error"]["param"]), (404, "model"))
            self.assertEqual(server.ask("/v1/models/gpt-x")[0], 404)


class Running(unittest.TestCase):
    """What happens while requests run."""

    def test_a_seed_decides_alone_in_company_and_elsewhere(self):
        ask = {"messages": [user("Tell me a story about a mill.")], "seed": 11, "temperature": 1, "max_tokens": 48,
               "logprobs": True}

        def result(server):
            answer = server.chat(**ask)
            return answer["system_fingerprint"], answer["seed"], answer["choices"]

        with Server(MILLRACE) as one, Server(MILLRACE, "--chunk-ms", "2", threads=2) as two:
            alone = result(one)
            with concurrent.futures.ThreadPoolExecutor(17) as pool:
                others = [pool.submit(one.chat, LONG * (i % 5) + f"Tell me {i} things.", max_tokens=64, ignore_eos=True)
                          for i in range(16)]
                mixed = pool.submit(result, one).result()
                [other.result() for other in others]
            self.assertEqual(mixed, alone)
            self.assertEqual(result(two), alone)

    def test_who_leaves_is_cancelled_in_every_phase(self):
        story = {"messages": [user("Tell me a story.")], "ignore_eos": True, "max_tokens": 60000, "stream": True}
        long = {**story, "messages": [user(LONG * 600)], "max_tokens": 5}
        with Server(MILLRACE, "--parallel", "1") as server:
            decoding = server.send(CHAT, story)
            next(read_events(decoding))
            queued = [self.leave_unread(server, {**story, "stream": stream}) for stream in (True, False)]
            server.wait(lambda state: len(state["running"]) == 1 and len(state["waiting"]) == 2, "nothing waits")
            for connection in queued:
                connection.close()
            state = server.wait(lambda state: not state["waiting"], "a queued request outlives its client")
            self.assertEqual([one["phase"] for one in state["running"]], ["decode"])
            decoding.connection.close()
            server.wait_idle()
            prefilling = server.send(CHAT, long)
            state = server.wait(lambda state: state["running"], "nothing is prefilled")
            self.assertEqual([one["phase"] for one in state["running"]], ["prefill"])
            prefilling.connection.close()
            state = server.wait_idle()
            self.assertEqual(state["pages"]["in_use"], 0)
            server.chat("Hello", max_tokens=2)

    @staticmethod
    def leave_unread(server, body):
        connection = socket.create_connection(("127.0.0.1", server.port))
        data = json.dumps(body).encode()
        connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" %
                           (CHAT.encode(), len(data), data))
        return connection

    def test_a_stop_signal_lets_streams_end(self):
        server = Server(MILLRACE)
        ask = {"messages": [user("Tell me a story.")], "max_tokens": 400, "ignore_eos": True, "stream": True}
        reply = server.send(CHAT, ask)
        events = read_events(reply)
        next(events)
        server.process.send_signal(signal.SIGTERM)
        rest = [data for _, data in events]
        reply.connection.close()
        self.assertEqual(rest[-1], "[DONE]")
        self.assertEqual(rest[-2]["choices"][0]["finish_reason"], "length")
        self.assertEqual(server.stop(), 0)

    def test_a_unix_socket(self):
        path = os.path.join(tempfile.mkdtemp(), "socket")
        self.addCleanup(os.rmdir, os.path.dirname(path))
        with Server(MILLRACE, "--unix-socket", path), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertIn(b"200 OK", connection.recv(65536))
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
