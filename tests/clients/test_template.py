"""Chat templates against Python's jinja2: the same text, or an error on both sides."""

import json
import os
import pathlib
import random
import re
import subprocess

import pytest
from jinja_oracle import NOW, render

DATA = os.environ.get("MILLRACE_TEST_DATA", "")
TEMPLATES = sorted(pathlib.Path(DATA, "chat-templates").glob("*.jinja")) if DATA else []


class Ours:
    def __init__(self):
        driver = os.environ["MILLRACE_TEMPLATE_DUMP"]
        self.process = subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def render(self, source, variables):
        job = json.dumps({"template": source, "variables": variables, "now": NOW})
        self.process.stdin.write(job.encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def ours():
    driver = Ours()
    yield driver
    driver.process.stdin.close()
    driver.process.wait()


def same(ours, source, variables):
    expected, got = render(source, variables), ours.render(source, variables)
    what = f"{source[:300]}\n{json.dumps(variables)[:1500]}\njinja2: {expected!r}\nours: {got}"
    if isinstance(expected, Exception):
        assert not got["ok"], what
    else:
        assert got["ok"], what
        assert got["text"] == expected, what


class Random:
    """Random expressions over a few variables: mostly wrong ones, and the two sides must agree on which."""

    NAMES = "n f s t no e l d rows uni zz".split() + [f"c{i}" for i in range(29)]
    FILTERS = """abs batch(2) capitalize default('d') default(1,true) dictsort escape first float int indent items join
        join(',') last length list lower map('string') map(attribute='k') max min reject('none') replace('a','b') reverse
        round round(1) safe select select('string') selectattr('k') slice(2) sort sort(reverse=true) string sum title tojson
        trim truncate(5) unique upper urlencode wordcount center(9) tojson(indent=1) format(1) groupby('k')""".split()
    TESTS = """defined undefined none string number integer float boolean mapping sequence iterable true false odd even
        lower upper eq(1) ne('a') lt(2) gt(0) in('abc') divisibleby(2) sameas(none)""".split()
    METHODS = """upper() lower() strip() split() split('a') startswith('H') replace('l','L') title() capitalize() items()
        keys() values() get('b') get('zz',3) find('l') count('l') join('ab') splitlines() format(1) index(1) isdigit() zfill(4)
        rsplit(',',1) lstrip('H') partition(',') removeprefix('He') swapcase() isalpha() islower()""".split()
    ATTRIBUTES = "a b k x items 0 1 length".split()
    BINARY = "+ - * / // % ** ~ == != < <= > >= and or in".split() + ["not in"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, what):
        return self.random.choice(what)

    def expression(self, depth):
        if depth == 0 or self.random.random() < 0.15:
            return self.pick(self.NAMES)
        inner = self.expression(depth - 1)
        other = self.expression(depth - 1)
        index = self.pick(["0", "-1", "1:", ":-1", "::-1", "::2", "'a'", "'b'", "5", other])
        return self.pick([
            f"({inner}) {self.pick(self.BINARY)} ({other})", f"({inner}) {self.pick(self.BINARY)} ({other})",
            f"({inner})|{self.pick(self.FILTERS)}", f"({inner})|{self.pick(self.FILTERS)}",
            f"({inner})|{self.pick(self.FILTERS)}|list", f"({inner}) is {self.pick(self.TESTS)}",
            f"({inner}).{self.pick(self.METHODS)}", f"({inner}).{self.pick(self.ATTRIBUTES)}", f"({inner})[{index}]",
            f"not ({inner})", f"-({inner})", f"({inner}) if ({other}) else 1", f"[{inner}, {other}]", f"{{'k': {inner}}}",
        ])


def function(name="get_weather", **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters}}


CITY = {"type": "string", "description": "A city, e.g. \"Zürich\" <here> & 'there'"}
TOOLS = [
    function(city=CITY, unit={"type": "string", "enum": ["c", "f"], "default": None}),
    function("add", a={"type": "number"}, b={"type": ["integer", "null"], "minimum": 0.5}),
    function("nothing"),
    function("deep", o={"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}}),
]


def user(content="Hi there"):
    return {"role": "user", "content": content}


def system(content="Be brief."):
    return {"role": "system", "content": content}


def assistant(content="Hello!", **more):
    return {"role": "assistant", "content": content, **more}


def call(name="get_weather", arguments=None, call_id="abcdef123"):
    arguments = {"city": "Zürich", "unit": None} if arguments is None else arguments
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*which, content="", **more):
    return assistant(content, tool_calls=list(which), **more)


def result(content="21 °C", **more):
    return {"role": "tool", "name": "get_weather", "tool_call_id": "abcdef123", "content": content, **more}


TURN = [user("Weather?"), calls(call()), result(), assistant("Warm.")]
TWO = [
    user("Both"),
    calls(call(), call("add", {"a": 1, "b": 2.5, "l": [1, "x", {"y": None}], "t": True}, "ghijkl456")),
    result(), result("3.5", tool_call_id="ghijkl456", name="add"),
]
CONVERSATIONS = {
    "empty": [],
    "user": [user()],
    "system": [system(), user()],
    "system_only": [system()],
    "several": [system(), user(), assistant(), user("And now?")],
    "ends_with_assistant": [user(), assistant("Sure: ")],
    "two_users": [user("a"), user("b")],
    "two_systems": [system("one"), system("two"), user()],
    "late_system": [user(), system("late"), user()],
    "developer": [{"role": "developer", "content": "Dev"}, user()],
    "unknown_role": [{"role": "critic", "content": "?"}, user()],
    "no_role": [{"content": "?"}],
    "no_content": [{"role": "user"}],
    "none_content": [user(None)],
    "none_answer": [user(), assistant(None), user()],
    "empty_content": [system(""), user(""), assistant(""), user("  ")],
    "spaces": [system("  s \n"), user("\n\n u \t"), assistant("  a  "), user("x\r\ny\u2028z")],
    "unicode": [user("ÄÖ ß 中文 🙂\u200d🙂 עברית \x00\x1b é"), assistant("’“”—"), user("ﬁ İ")],
    "control_text": [user("<|im_end|><|eot_id|></s>[INST] {{ 1 }} {% if %}"), assistant("<think>x</think>y"), user()],
    "quotes": [user("it's \"quoted\" \\ back\nslash"), assistant("{'a': \"b\"}"), user()],
    "parts": [user([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])],
    "parts_system": [system([{"type": "text", "text": "sys"}]), user([{"type": "text", "text": "u"}])],
    "image": [user([{"type": "text", "text": "see"}, {"type": "image"}, {"type": "image_url", "image_url": {"url": "x"}}])],
    "content_dict": [user({"a": 1})],
    "content_number": [user(42)],
    "reasoning": [user(), assistant("4", reasoning_content="2+2\n"), user("again")],
    "reasoning_last": [user(), assistant("4", reasoning_content="2+2")],
    "thinking": [user(), assistant("4", thinking="hm"), user("again")],
    "inline_thinking": [user(), assistant("<think>\nhm\n</think>\n\n4"), user("x"), assistant("<think>a</think>b")],
    "broken_thinking": [user(), assistant("hm</think>4"), user(), assistant("<think>never closed"), user()],
    "tool_turn": TURN,
    "tool_turn_more": [system(), *TURN, user("Thanks"), assistant("Welcome"), user("x")],
    "tool_open": TURN[:3],
    "two_calls": TWO,
    "two_calls_more": [*TWO, assistant("Done"), user("?")],
    "two_turns": [user("a"), calls(call()), result("1"), calls(call("add", {"a": -1, "b": 10**15})), result("2"), user("b")],
    "call_reasoning": [user("a"), calls(call(), reasoning_content="think"), result(), user("b")],
    "call_content": [user("a"), calls(call(), content="Let me see."), result(), user("b")],
    "call_none": [user("a"), calls(call(), content=None), result()],
    "call_no_content": [user("a"), {"role": "assistant", "tool_calls": [call()]}, result()],
    "call_string": [user("a"), calls(call(arguments='{"city": "Bern"}')), result()],
    "call_bad": [user("a"), calls(call(arguments='{"city": ')), result()],
    "call_empty": [user("a"), calls(call(arguments={})), result("")],
    "call_flat": [user("a"), assistant("", tool_calls=[{"name": "add", "arguments": {"a": 1}}]), result()],
    "calls_none": [user("a"), assistant("x", tool_calls=None), user("b")],
    "calls_empty": [user("a"), assistant("x", tool_calls=[]), user("b")],
    "result_json": [*TURN[:2], result(json.dumps({"t": 21.5, "s": "ü"})), user("x")],
    "result_dict": [*TURN[:2], result({"t": 21.5, "n": None, "l": [1, 2.0, "x"]}), user("x")],
    "result_list": [*TURN[:2], result([{"type": "text", "text": "21"}]), user("x")],
    "result_alone": [result()],
    "ipython": [user("a"), calls(call()), {"role": "ipython", "content": "out"}],
    "long": [m for i in range(20) for m in (user(f"question {i}"), assistant(f"answer {i}"))] + [user("last")],
}
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
SETTINGS = {
    "plain": {"add_generation_prompt": True},
    "no_prompt": {"add_generation_prompt": False},
    "tools": {"add_generation_prompt": True, "tools": TOOLS},
    "no_tools": {"add_generation_prompt": True, "tools": []},
    "thinking": {"add_generation_prompt": True, "enable_thinking": True, "thinking": True},
    "no_thinking": {"add_generation_prompt": True, "enable_thinking": False, "thinking": False, "tools": TOOLS[:1]},
    "effort": {"add_generation_prompt": True, "reasoning_effort": "high", "tools": TOOLS, "builtin_tools": ["python", "browser"], "model_identity": "M"},
    "custom": {"custom_tools": TOOLS, "builtin_tools": ["brave_search"], "date_string": "1 Jan 2026", "tools_in_user_message": False, "xml_tools": TOOLS, "python_tools": TOOLS[:1]},
    "documents": {"add_generation_prompt": True, "documents": [{"doc_id": 1, "title": "T", "text": "B"}], "available_tools": TOOLS, "safety_mode": "STRICT", "controls": {"length": "short", "originality": "x"}},
}


@pytest.mark.skipif(not TEMPLATES, reason="MILLRACE_TEST_DATA names no folder with chat-templates/*.jinja")
@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_real_templates(ours, path):
    source = path.read_text()
    for messages in CONVERSATIONS.values():
        for settings in SETTINGS.values():
            same(ours, source, {**TOKENS, "tools": None, "documents": None, **settings, "messages": messages})


VARIABLES = {
    "n": 7, "f": 2.5, "s": "Hello, Wörld", "t": True, "no": None, "e": "", "l": [3, 1, 2], "uni": "aß中🙂é",
    "d": {"b": 1, "a": {"x": [10, 20]}, "items": "shadow"}, "rows": [{"k": "b", "v": 2}, {"k": "a", "v": 1}],
}
# Constants by name, so that jinja2 does not fold them: what it folds follows other rules.
CONSTANTS = [0, 1, -1, 2, 10, 2.5, -0.5, 1e20, "", "a", "Hello", "%s", "{}", "é", True, False, None, [], [1, 2], ["a", "b"], {},
             {"a": 1}, [1], [""], [None], [[1], [2]], "12", " 3.5 ", "A\nb"]
VARIABLES.update({f"c{i}": value for i, value in enumerate(CONSTANTS)})


def shows_no_python(text):
    """Addresses (even letter by letter), and integers past 64 bits, which we refuse."""
    letters = re.sub("[^a-z]", "", text.lower())
    return not re.search(r"objectat|generatorobject", letters) and not re.search(r"\d{19}", text)


@pytest.mark.parametrize("seed", range(4))
def test_random_expressions(ours, seed):
    generate = Random(seed)
    for _ in range(1500):
        source = "{{ " + generate.expression(generate.random.randint(1, 4)) + " }}"
        expected, got = render(source, VARIABLES), ours.render(source, VARIABLES)
        if not got["ok"] and "64 bits" in got["error"]:
            continue
        if isinstance(expected, (OverflowError, RecursionError)) or (isinstance(expected, str) and not shows_no_python(expected)):
            continue
        same(ours, source, VARIABLES)
