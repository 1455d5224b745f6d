"""The server as the `openai` package sees it."""

import json
import socket
import time

import openai
import pydantic
import pytest
from serving import Server, call, function

WEATHER = function("get_weather", {"city": {"type": "string"}})


class Thing(pydantic.BaseModel):
    color: str = pydantic.Field(pattern="^(red|green)$")
    count: int = pydantic.Field(ge=0, le=9)


def client_of(server, **options):
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", **{"max_retries": 0, **options})


@pytest.fixture(scope="module")
def client(plain):
    return client_of(plain)


def user(text):
    return {"role": "user", "content": text}


def chat(client, text="Hello", **fields):
    return client.chat.completions.create(**{"model": "tiny", "messages": [user(text)], "max_tokens": 12, **fields})


# ---- chat completions


def test_chat(client):
    answer = chat(client, temperature=0)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens == 12 and answer.choices[0].finish_reason == "length"
    assert answer.system_fingerprint


def test_a_stream_adds_up_to_the_whole(client):
    whole = chat(client, seed=7)
    chunks = list(chat(client, seed=7, stream=True, stream_options={"include_usage": True}))
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == 12


def test_the_streaming_helper_collects_an_answer(scripted):
    client = client_of(scripted((None, "It is fine.")))
    with client.chat.completions.stream(model="tiny", messages=[user("Hello")]) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content == "It is fine."


def test_logprobs_and_choices(client):
    answer = chat(client, n=2, logprobs=True, top_logprobs=2, seed=1)
    assert len(answer.choices) == 2
    assert len(answer.choices[0].logprobs.content) == 12
    assert len(answer.choices[0].logprobs.content[0].top_logprobs) == 2


def test_parse_gives_an_object(client):
    answer = client.chat.completions.parse(model="tiny", messages=[user("A thing")], response_format=Thing, max_tokens=60)
    thing = answer.choices[0].message.parsed
    assert thing.color in ("red", "green") and 0 <= thing.count <= 9


def test_parse_gives_a_tools_arguments(client):
    tool = openai.pydantic_function_tool(Thing, name="make")
    answer = client.chat.completions.parse(model="tiny", messages=[user("A thing")], tools=[tool], tool_choice="required",
                                           parallel_tool_calls=False, max_tokens=80)
    made, = answer.choices[0].message.tool_calls
    assert isinstance(made.function.parsed_arguments, Thing)


def test_a_cut_off_object_is_told(client):
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(model="tiny", messages=[user("A thing")], response_format=Thing, max_tokens=2)


@pytest.mark.parametrize("stream", [False, True])
def test_a_round_of_tools(scripted, stream):
    server = scripted(("Paris", call("get_weather", city="Paris") + call("get_weather", city="Rome")), ("sunny", "It is sunny."))
    client = client_of(server)
    messages = [user("How is Paris, and Rome?")]
    fields = {"model": "tiny", "tools": [WEATHER], "max_tokens": 200}

    def ask():
        if not stream:
            return client.chat.completions.create(messages=messages, **fields)
        with client.chat.completions.stream(messages=messages, **fields) as events:
            return events.get_final_completion()

    first = ask()
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert [json.loads(made.function.arguments)["city"] for made in message.tool_calls] == ["Paris", "Rome"]
    messages.append(message)
    messages += [{"role": "tool", "tool_call_id": made.id, "content": "sunny"} for made in message.tool_calls]
    second = ask()
    assert second.choices[0].message.content == "It is sunny."
    if not stream:
        assert second.usage.prompt_tokens_details.cached_tokens >= first.usage.prompt_tokens


# ---- models


def test_models(client):
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("org/some-model").id == "org/some-model"


# ---- errors, retries, leaving


def test_errors_have_types(client, plain):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, temperature=-1)
    assert caught.value.param == "temperature" and caught.value.type == "invalid_request_error"
    with pytest.raises(openai.NotFoundError):
        client.get("/nowhere", cast_to=object)
    with pytest.raises(openai.APIStatusError) as caught:
        client.embeddings.create(model="tiny", input="Hi")
    assert caught.value.status_code == 501
    with pytest.raises(openai.BadRequestError):
        chat(client, messages=[])


def test_a_prompt_that_is_too_long(millrace):
    with Server(millrace, "-c", "128") as server, pytest.raises(openai.BadRequestError) as caught:
        chat(client_of(server), "word " * 500)
    assert caught.value.code == "context_length_exceeded"


def test_keys(millrace):
    keys = {"MILLRACE_API_KEYS": "team:key-team-0123456789abcdef"}
    with Server(millrace, environment=keys) as server:
        with pytest.raises(openai.AuthenticationError):
            chat(client_of(server))
        assert chat(openai.OpenAI(base_url=f"{server.url}/v1", api_key="key-team-0123456789abcdef")).choices
        with pytest.raises(openai.PermissionDeniedError):
            openai.OpenAI(base_url=server.url, api_key="key-team-0123456789abcdef").get("/debug/engine", cast_to=object)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_client_waits_while_the_model_is_loaded(millrace):
    """How long loading takes cannot be said, so it tries until it met a server that was not ready."""
    statuses, waits = [], []

    def note(reply):
        statuses.append(reply.status_code)
        if reply.status_code == 503:
            waits.append(reply.headers["retry-after"])

    for _ in range(20):
        port = free_port()
        with Server(millrace, port=port, wait=False) as server:
            http = openai.DefaultHttpxClient(event_hooks={"response": [note]})
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    assert server.process.poll() is None, server.said
                    time.sleep(0.001)
            assert chat(client_of(server, max_retries=5, http_client=http)).choices
        if waits:
            break
    assert statuses[-1] == 200
    if not waits:
        pytest.skip("the model was always loaded before a request came")
    assert waits[0] == "1"


def test_leaving_a_stream_cancels_it(millrace):
    with Server(millrace) as server:
        stream = chat(client_of(server), stream=True, max_tokens=60000, extra_body={"ignore_eos": True})
        next(iter(stream))
        server.wait(lambda state: state["running"], "nothing runs")
        stream.close()
        assert server.wait_idle()["pages"]["in_use"] == 0


def test_an_answer_that_takes_too_long_is_cancelled(millrace):
    with Server(millrace) as server:
        with pytest.raises(openai.APITimeoutError):
            chat(client_of(server, timeout=0.5), max_tokens=60000, extra_body={"ignore_eos": True})
        server.wait_idle()


def test_another_clients_fields(client):
    answer = chat(client, extra_body={"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1, "cache_salt": "s", "session_id": "x",
                                      "chat_template_kwargs": {"enable_thinking": False}, "some_new_field": 1})
    assert answer.choices
