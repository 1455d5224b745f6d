"""What `millrace serve` recomputes when a client comes back: each way in which clients and templates are known to
change the beginning of a prompt, or seem to, is a test here. Usage: serve_reuse_test.py MILLRACE [UNITTEST ARGS]"""

import concurrent.futures
import json
import os
import sys
import time
import unittest

from serving import Server, call, function

MILLRACE = os.path.abspath(sys.argv.pop(1))
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
SYSTEM = "You keep the books of a water mill by the river and answer in one short sentence. " * 8
TOOLS = [function("grind", {"grain": {"type": "string"}, "kilos": {"type": "integer"}}),
         function("open_gate", {"gate": {"type": "string"}})]
CLIENT_TOOLS = [{"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]} for tool in TOOLS]
# Tokens around a message in the template, and what is not worth computing ahead.
AROUND = 24
PAGE = 64  # tokens


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


class Reuse(unittest.TestCase):
    GRIND = "At once. " + call("grind", grain="rye", kilos=7)

    @classmethod
    def setUpClass(cls):
        script = [("Grind", cls.GRIND)] * 40 + [(None, "The gate is open, and the wheel turns.")]
        cls.server = Server(MILLRACE, script=script)
        cls.plain = Server(MILLRACE)
        cls.n_salts = 0

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.plain.stop()

    def fresh_salt(self):
        """Of a conversation that nobody has had yet."""
        type(self).n_salts += 1
        return f"salt {self.n_salts}"

    def chat(self, messages, salt, server=None, **fields):
        """The message, the tokens of its prompt, and how many of those were computed."""
        answer = (server or self.server).chat(messages, cache_salt=salt, **{"max_tokens": 100, **fields})
        usage = answer["usage"]
        n_prompt = usage["prompt_tokens"]
        return answer["choices"][0]["message"], n_prompt, n_prompt - usage["prompt_tokens_details"]["cached_tokens"]

    def ask(self, body, salt):
        """The same of Anthropic's API."""
        status, answer = self.server.ask(MESSAGES, {"max_tokens": 100, "cache_salt": salt, **body})
        self.assertEqual(status, 200, answer)
        usage = answer["usage"]
        computed = usage["input_tokens"] + usage["cache_creation_input_tokens"]
        return answer["content"], computed + usage["cache_read_input_tokens"], computed

    def soon(self, computed, most):
        """computed(salt) is at most so much, once the server had a moment between a conversation's turns: what will
        render otherwise is computed ahead, in the gap before the client comes back."""
        for gap_s in (0.05, 0.2, 1, 4):
            seen = computed(self.fresh_salt(), lambda: time.sleep(gap_s))
            if seen <= most:
                return
        self.assertLessEqual(seen, most)

    def test_the_next_turn_computes_no_history(self):
        def computed(salt, gap):
            first = [system(SYSTEM), user("Is the gate open?")]
            said, n_first, n_computed = self.chat(first, salt)
            self.assertEqual(n_computed, n_first)
            gap()
            return self.chat([*first, said, user("And the wheel?")], salt)[2]
        self.soon(computed, AROUND)

    def test_1_a_changing_billing_line_in_the_system_blocks(self):
        def body(number, *messages):
            line = f"x-anthropic-billing-header: cc_version=2.0; cch={number};"
            return {"system": [{"type": "text", "text": line}, {"type": "text", "text": SYSTEM}], "messages": messages}

        def computed(salt, gap):
            content = self.ask(body("00a1f", user("Is the gate open?")), salt)[0]
            gap()
            return self.ask(body("9c2d7", user("Is the gate open?"), assistant(content), user("And the wheel?")), salt)[2]
        self.soon(computed, AROUND)

    def test_2_system_messages_in_mid_conversation_stay_there(self):
        def chat(salt, gap):
            first = [system(SYSTEM), user("Is the gate open?")]
            said = self.chat(first, salt)[0]
            gap()
            return self.chat([*first, said, system("99 tokens left."), user("And the wheel?")], salt)[2]

        def ask(salt, gap):
            content = self.ask({"system": SYSTEM, "messages": [user("Is the gate open?")]}, salt)[0]
            gap()
            return self.ask({"system": SYSTEM, "messages": [user("Is the gate open?"), assistant(content),
                                                            system("99 tokens left."), user("And the wheel?")]}, salt)[2]
        self.soon(chat, AROUND + 12)
        self.soon(ask, AROUND + 12)

    def test_3_arguments_that_a_client_writes_in_its_own_way(self):
        def chat(arguments):
            def computed(salt, gap):
                first = [system(SYSTEM), user("Grind")]
                said = self.chat(first, salt, tools=TOOLS)[0]
                gap()
                for one in said["tool_calls"]:
                    one["function"]["arguments"] = arguments(one["function"]["arguments"])
                result = {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "Done."}
                return self.chat([*first, said, result], salt, tools=TOOLS)[2]
            return computed

        def ask(salt, gap):
            first = {"system": SYSTEM, "tools": CLIENT_TOOLS, "messages": [user("Grind")]}
            content = self.ask(first, salt)[0]
            gap()
            self.assertEqual(content[-1]["input"], {"grain": "rye", "kilos": 7})
            result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "Done."}
            return self.ask({**first, "messages": [user("Grind"), assistant(content), user([result])]}, salt)[2]
        self.soon(chat(lambda text: text), AROUND)
        self.soon(chat(lambda text: json.dumps(json.loads(text), separators=(",", ":"))), AROUND)
        self.soon(chat(lambda text: json.dumps(json.loads(text), indent=2)), AROUND)
        self.soon(ask, AROUND)

    def test_4_tools_keep_their_order_and_dropped_reasoning_costs_nothing(self):
        salt = self.fresh_salt()
        first = [system(SYSTEM), user("Is the gate open?")]
        _, n_prompt, n_computed = self.chat(first, salt, tools=TOOLS)
        self.assertEqual(n_computed, n_prompt)
        self.assertEqual(self.chat(first, salt, tools=TOOLS)[2], 1)
        self.assertGreater(self.chat(first, salt, tools=TOOLS[::-1])[2], AROUND)  # another prompt, and not sorted
        thought = {**assistant("Yes."), "reasoning_content": "Let me see."}
        n_with = self.chat([*first, thought, user("Good.")], salt, tools=TOOLS)[1]
        self.assertEqual(self.chat([*first, assistant("Yes."), user("Good.")], salt, tools=TOOLS)[1:], (n_with, 1))

    def test_5_text_that_tokenises_otherwise_than_it_was_drawn(self):
        def computed(salt, gap):
            first = [system(SYSTEM), user("Tell me something odd.")]
            said = self.chat(first, salt, self.plain, temperature=3, top_k=0, top_p=1, min_p=0, seed=4)[0]
            gap()
            return self.chat([*first, said, user("Go on.")], salt, self.plain, max_tokens=1)[2]
        self.soon(computed, AROUND)

    def test_6_only_the_last_token_is_computed_again(self):
        text = "The wheel turns and the stone grinds."
        for n in range(1, 40, 3):  # pages end anywhere
            salt = self.fresh_salt()
            prompt = [user(text + " one" * n)]
            self.chat(prompt, salt, max_tokens=1)
            self.assertEqual(self.chat(prompt, salt, max_tokens=1)[2], 1, n)

    def test_7_images_are_placeholders_whatever_they_show(self):
        def message(data):
            return user([{"type": "text", "text": SYSTEM}, {"type": "image_url",
                                                             "image_url": {"url": f"data:image/png;base64,{data}"}}])
        salt = self.fresh_salt()
        n_prompt = self.chat([message("iVBORw0KGgo=")], salt)[1]
        self.assertEqual(self.chat([message("!!not base64!!")], salt)[1:], (n_prompt, 1))
        answer = self.server.chat([message("")], cache_salt=salt)
        self.assertIn("image", answer["warnings"][0])

    def test_8_a_salt_and_the_templates_variables_keep_prompts_apart(self):
        first = [system(SYSTEM), user("Is the gate open?")]
        one, other = self.fresh_salt(), self.fresh_salt()
        n_prompt = self.chat(first, one)[1]
        self.assertEqual(self.chat(first, other)[2], n_prompt)
        self.assertEqual(self.chat(first, one)[2], 1)

    def test_9_what_was_compacted_away_gives_its_memory_back(self):
        """More conversations than there is memory for, each cut down to a summary after some turns."""
        with Server(MILLRACE, "-c", "1024", script=[(None, "Yes.")], kv_memory="16M") as server:
            total = server.engine()["pages"]["total"] * PAGE
            n_seen = 0
            for session in range(9):
                history = [system(SYSTEM), user(f"Session {session}. " + "The grain is wet. " * 60)]
                for turn in range(4):
                    if turn == 2:
                        history = [system(SYSTEM), user(f"Summary of session {session}: wet grain.")]
                    said, _, n_computed = self.chat(history, "", server, max_tokens=4)
                    n_seen += n_computed
                    if turn == 2:
                        self.assertLess(n_computed, AROUND + 20)  # the system message is still there
                    history += [said, user("Go on.")]
            state = server.wait_idle()
            self.assertEqual(state["pages"]["in_use"], 0)
            self.assertLessEqual(state["tree"]["tokens"], total)
            self.assertGreater(n_seen, total)

    def test_10_what_sub_agents_share_is_computed_once(self):
        salt, n = self.fresh_salt(), 8
        shared = [system(SYSTEM * 6)]
        n_shared = self.chat(shared + [user("x")], self.fresh_salt(), tools=TOOLS)[1]
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            asked = [pool.submit(self.chat, shared + [user(f"You are agent {i}.")], salt, tools=TOOLS) for i in range(n)]
            computed = sum(one.result()[2] for one in asked)
        self.assertLess(computed, n_shared + n * (PAGE + AROUND))  # of what is in flight, whole pages are shared

    def test_11_what_a_context_is_worth_is_explained(self):
        def uses():
            status, said = self.server.ask("/debug/kv")
            self.assertEqual((status, said["policy"]), (200, "value"))
            return [use for block in said["blocks"] for use in block["uses"]]

        before = uses()
        messages = [system(SYSTEM), user("Grind it. " + "The grain is wet. " * 20)]
        self.chat(messages, self.fresh_salt(), tools=TOOLS, prompt_cache_key="worth", prompt_cache_options={"ttl": "30m"})
        new = [use for use in uses() if use["line"] not in {one["line"] for one in before}]
        self.assertIn("grind", {use["after"] for use in new})
        self.assertEqual({use["hint_s"] for use in new}, {1800})
        self.assertTrue(all(0 < use["back_within_a_minute"] <= 1 for use in new), new)
        _, metrics = self.server.ask("/metrics")
        self.assertIn(b'millrace_retention_total{outcome="hit"}', metrics)


if __name__ == "__main__":
    unittest.main()
