"""The dialects against the packages that speak them: what the SDKs send is read, and what we write is what they parse.
No model and no socket: an HTTP transport of the SDKs' own kind hands each request to dialect_dump."""

import json
import os
import subprocess

import anthropic
import httpx2 as httpx
import openai
import pydantic
import pytest

CALLS = [
    {"kind": "accepted"}, {"kind": "reasoning", "text": "hm"}, {"kind": "text", "text": "I "}, {"kind": "text", "text": "look"},
    {"kind": "call_begin", "call": 0, "call_id": "call_a", "text": "read"},
    {"kind": "call_arguments", "call": 0, "text": '{"path":'}, {"kind": "call_arguments", "call": 0, "text": '"x"}'},
    {"kind": "call_end", "call": 0}, {"kind": "call_begin", "call": 1, "call_id": "call_b", "text": "ls"},
    {"kind": "call_arguments", "call": 1, "text": "{}"}, {"kind": "call_end", "call": 1},
    {"kind": "finished", "finish": "tool_calls"}, {"kind": "done"}]
WORDS = [{"kind": "accepted"}, {"kind": "tokens", "tokens": ["Hi"]}, {"kind": "text", "text": "Hi"},
         {"kind": "finished"}, {"kind": "done"}]
JSON = [{"kind": "accepted"}, {"kind": "text", "text": '{"answer": 42}'}, {"kind": "finished"}, {"kind": "done"}]
FAILS = [{"kind": "accepted"}, {"kind": "text", "text": "I"}, {"kind": "failed"}]
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}


class Transport(httpx.BaseTransport):
    """Answers requests as the server would, with the events that a test puts into `events`."""

    def __init__(self):
        self.process = subprocess.Popen([os.environ["MILLRACE_DIALECT_DUMP"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.events, self.last = WORDS, {}

    def handle_request(self, request):
        body = json.loads(request.read())
        job = {"path": request.url.path, "body": body, "events": self.events}
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()
        self.last = json.loads(self.process.stdout.readline())
        if "error" in self.last:
            return httpx.Response(self.last["status"], json=self.last["error"])
        if body.get("stream"):
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=self.last["stream"].encode())
        return httpx.Response(200, json=self.last["whole"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="module")
def server():
    transport = Transport()
    yield transport
    transport.close()


def openai_client(server, strict=True):
    return openai.OpenAI(api_key="k", base_url="http://x/v1", max_retries=0, _strict_response_validation=strict,
                         http_client=httpx.Client(transport=server))


@pytest.fixture(scope="module")
def gpt(server):
    return openai_client(server)


@pytest.fixture(scope="module")
def claude(server):
    return anthropic.Anthropic(api_key="k", base_url="http://x", max_retries=0, _strict_response_validation=True,
                               http_client=httpx.Client(transport=server))


USER = [{"role": "user", "content": "Hi"}]
FUNCTION = {"type": "function", "function": {"name": "read", "parameters": TOOL}}


def test_chat(server, gpt):
    server.events = WORDS
    out = gpt.chat.completions.create(model="m", messages=USER, logprobs=True)
    assert out.choices[0].message.content == "Hi" and out.choices[0].finish_reason == "stop"
    assert out.choices[0].logprobs.content[0].token == "Hi"
    assert out.usage.total_tokens == 29 and out.usage.prompt_tokens_details.cached_tokens == 16
    assert out.system_fingerprint == "f"


def test_chat_tools_and_back(server, gpt):
    server.events = CALLS
    out = gpt.chat.completions.create(model="m", messages=USER, tools=[FUNCTION])
    message = out.choices[0].message
    assert [c.function.name for c in message.tool_calls] == ["read", "ls"]
    assert out.choices[0].finish_reason == "tool_calls" and message.reasoning_content == "hm"
    results = [{"role": "tool", "tool_call_id": c.id, "content": "1"} for c in message.tool_calls]
    gpt.chat.completions.create(model="m", messages=[*USER, message, *results], tools=[FUNCTION])
    messages = server.last["request"]["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == '{"path":"x"}'
    assert messages[1]["reasoning_content"] == "hm"


def test_chat_stream(server, gpt):
    server.events = CALLS
    with gpt.chat.completions.stream(model="m", messages=USER, tools=[FUNCTION], stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        out = stream.get_final_completion()
    assert out.choices[0].message.content == "I look"
    assert [c.function.arguments for c in out.choices[0].message.tool_calls] == ['{"path":"x"}', "{}"]
    assert out.usage.completion_tokens == 9


def test_chat_errors(server, gpt):
    with pytest.raises(openai.BadRequestError) as caught:
        gpt.chat.completions.create(model="m", messages=USER, n=1000)
    assert caught.value.param == "n" and caught.value.type == "invalid_request_error"
    server.events = FAILS
    with pytest.raises(openai.APIError, match="device was lost"):
        list(gpt.chat.completions.create(model="m", messages=USER, stream=True))


class Found(pydantic.BaseModel):
    answer: int


def test_structured_output(server, gpt):
    server.events = JSON
    out = gpt.chat.completions.parse(model="m", messages=USER, response_format=Found)
    assert out.choices[0].message.parsed.answer == 42
    assert gpt.responses.parse(model="m", input="Hi", text_format=Found).output_parsed.answer == 42


def test_completions(server, gpt):
    server.events = WORDS
    out = gpt.completions.create(model="m", prompt=["a", "b"], logprobs=1)
    assert out.choices[0].text == "Hi" and out.choices[0].logprobs.tokens == ["Hi"]
    # OpenAI's own chunks have no finish_reason until the last, which its types do not allow.
    chunks = list(openai_client(server, strict=False).completions.create(model="m", prompt="a", stream=True))
    assert "".join(c.choices[0].text for c in chunks) == "Hi"


def test_responses(server, gpt):
    server.events = CALLS
    tool = {"type": "function", "name": "read", "parameters": TOOL, "strict": False}
    out = gpt.responses.create(model="m", instructions="I", input="Hi", tools=[tool])
    assert [item.type for item in out.output] == ["reasoning", "message", "function_call", "function_call"]
    assert out.output_text == "I look" and out.status == "completed" and out.usage.total_tokens == 29
    results = [{"type": "function_call_output", "call_id": c.call_id, "output": "1"} for c in out.output[2:]]
    gpt.responses.create(model="m", input=[*USER, *out.output, *results], tools=[tool])
    messages = server.last["request"]["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[1]["reasoning_content"] == "hm" and messages[1]["content"] == "I look"


@pytest.mark.parametrize("reasoning", [None, {"summary": "auto"}])
def test_responses_stream(server, gpt, reasoning):
    server.events = CALLS
    more = {"reasoning": reasoning} if reasoning else {}
    with gpt.responses.stream(model="m", input="Hi", **more) as stream:
        events = list(stream)
        out = stream.get_final_response()
    assert [e.sequence_number for e in events] == list(range(len(events)))
    assert out.output_text == "I look" and out.output[2].arguments == '{"path":"x"}'
    assert ("response.reasoning_summary_text.delta" in {e.type for e in events}) == bool(reasoning)


def test_responses_custom_tool(server, gpt):
    server.events = [{"kind": "accepted"}, {"kind": "call_begin", "call_id": "c", "text": "patch"},
                     {"kind": "call_arguments", "text": '{"input": "***'}, {"kind": "call_arguments", "text": ' End"}'},
                     {"kind": "call_end"}, {"kind": "finished", "finish": "tool_calls"}, {"kind": "done"}]
    tool = {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}
    out = gpt.responses.create(model="m", input="Hi", tools=[tool])
    assert out.output[0].type == "custom_tool_call" and out.output[0].input == "*** End"
    gpt.responses.create(model="m", tools=[tool], input=[
        *USER, *out.output, {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}])
    assert server.last["request"]["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"input":"*** End"}'


def test_responses_errors(server, gpt):
    with pytest.raises(openai.BadRequestError) as caught:
        gpt.responses.create(model="m", input="Hi", previous_response_id="r")
    assert caught.value.param == "previous_response_id"
    server.events = FAILS
    last = list(gpt.responses.create(model="m", input="Hi", stream=True))[-1]
    assert last.type == "response.failed" and last.response.error.code == "server_error"


CLAUDE_TOOL = {"name": "read", "input_schema": TOOL}


def test_messages_tools_and_back(server, claude):
    server.events = CALLS
    out = claude.messages.create(model="m", max_tokens=9, messages=USER, tools=[CLAUDE_TOOL])
    assert [b.type for b in out.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert out.content[2].input == {"path": "x"} and out.stop_reason == "tool_use"
    assert (out.usage.input_tokens, out.usage.cache_read_input_tokens, out.usage.output_tokens) == (4, 16, 9)
    results = [{"type": "tool_result", "tool_use_id": b.id, "content": "1"} for b in out.content[2:]]
    claude.messages.create(model="m", max_tokens=9, tools=[CLAUDE_TOOL], messages=[
        *USER, {"role": "assistant", "content": out.content}, {"role": "user", "content": results}])
    messages = server.last["request"]["messages"]
    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "tool"]
    assert messages[1]["reasoning_content"] == "hm"


def test_messages_stream(server, claude):
    server.events = CALLS
    with claude.messages.stream(model="m", max_tokens=9, messages=USER, tools=[CLAUDE_TOOL]) as stream:
        for _ in stream:
            pass
        out = stream.get_final_message()
    assert [b.type for b in out.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert out.content[0].thinking == "hm" and out.content[0].signature and out.content[2].input == {"path": "x"}
    assert out.usage.output_tokens == 9 and out.stop_reason == "tool_use"


def test_messages_errors(server, claude):
    with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
        claude.messages.create(model="m", max_tokens=-1, messages=USER)
    server.events = FAILS
    with pytest.raises(anthropic.APIStatusError, match="device was lost"):
        with claude.messages.stream(model="m", max_tokens=9, messages=USER) as stream:
            list(stream)
