"""The server as the `anthropic` package sees it."""

import typing

import anthropic
import pydantic
import pytest
from serving import Server, call

WEATHER = {"name": "get_weather", "description": "The weather of a city.",
           "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


class Thing(pydantic.BaseModel):
    color: typing.Literal["red", "green"]
    is_heavy: bool


def client_of(server, **options):
    return anthropic.Anthropic(base_url=server.url, api_key="none", **{"max_retries": 0, **options})


@pytest.fixture(scope="module")
def client(plain):
    return client_of(plain)


COLD = {"extra_body": {"temperature": 0}}  # which the package left out of its own fields


def user(content):
    return {"role": "user", "content": content}


def ask(client, text="Hello", **fields):
    return client.messages.create(**{"model": "tiny", "messages": [user(text)], "max_tokens": 12, **fields})


def test_a_message(client):
    answer = ask(client, system="Be kind.", metadata={"user_id": "me"}, **COLD)
    assert answer.role == "assistant" and answer.model == "tiny" and answer.content[0].text
    assert answer.stop_reason == "max_tokens" and answer.usage.output_tokens == 12


def test_a_stream(client):
    with client.messages.stream(model="tiny", messages=[user("Hello")], max_tokens=12) as stream:
        said = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.content[0].text == said and final.usage.output_tokens == 12
    assert final.usage.input_tokens + final.usage.cache_read_input_tokens > 5


def test_stop_sequences(client):
    stop = ask(client, "Tell me a story.", **COLD).content[0].text[10:14]
    answer = ask(client, "Tell me a story.", stop_sequences=[stop], **COLD)
    assert answer.stop_reason == "stop_sequence" and answer.stop_sequence == stop


def test_tokens_are_counted_and_cached(client):
    fields = {"model": "tiny", "system": "You keep the books of a mill. " * 30, "messages": [user("Hello")], "tools": [WEATHER]}
    n = client.messages.count_tokens(**fields).input_tokens
    first, second = (client.messages.create(max_tokens=1, **fields).usage for _ in range(2))
    assert first.input_tokens + first.cache_creation_input_tokens + first.cache_read_input_tokens == n
    assert second.cache_read_input_tokens == n - 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_round_of_tools(scripted, stream):
    server = scripted(("Paris", "I look." + call("get_weather", city="Paris") + call("get_weather", city="Rome")),
                      ("sunny", "It is sunny."))
    client = client_of(server)
    messages = [user("How is Paris, and Rome?")]
    fields = {"model": "tiny", "tools": [WEATHER], "max_tokens": 200}

    def once():
        if not stream:
            return client.messages.create(messages=messages, **fields)
        with client.messages.stream(messages=messages, **fields) as events:
            return events.get_final_message()

    first = once()
    assert first.stop_reason == "tool_use"
    assert [block.type for block in first.content] == ["text", "tool_use", "tool_use"]
    uses = [block for block in first.content if block.type == "tool_use"]
    assert [use.input["city"] for use in uses] == ["Paris", "Rome"]
    messages.append({"role": "assistant", "content": first.content})
    messages.append(user([{"type": "tool_result", "tool_use_id": use.id, "content": "sunny"} for use in uses]))
    second = once()
    assert second.content[0].text == "It is sunny." and second.stop_reason == "end_turn"
    assert second.usage.cache_read_input_tokens >= first.usage.input_tokens


def test_the_tool_runner_runs_to_the_end(scripted):
    server = scripted(("How is", call("get_weather", city="Paris")), ("sunny in Paris", "It is sunny."))

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city.

        Args:
            city: Its name.
        """
        return f"sunny in {city}"

    runner = client_of(server).beta.messages.tool_runner(model="tiny", max_tokens=100, tools=[get_weather],
                                                         messages=[user("How is it there?")])
    assert runner.until_done().content[0].text == "It is sunny."


def test_a_tool_is_forced(client):
    answer = ask(client, tools=[{**WEATHER, "strict": True}], tool_choice={"type": "tool", "name": "get_weather",
                                                                            "disable_parallel_tool_use": True}, max_tokens=300)
    use, = [block for block in answer.content if block.type == "tool_use"]
    assert use.name == "get_weather"


def test_parse_gives_an_object(client):
    answer = client.messages.parse(model="tiny", messages=[user("A thing")], max_tokens=200, output_format=Thing, **COLD)
    assert isinstance(answer.parsed_output, Thing)


def test_models(client):
    assert [model.id for model in client.models.list().data] == ["tiny"]
    assert client.models.retrieve("org/some-model").id == "org/some-model"


def test_errors_have_types(client, millrace):
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(client, extra_body={"temperature": -1})
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    with pytest.raises(anthropic.BadRequestError):
        ask(client, messages=[])
    with pytest.raises(anthropic.NotFoundError):
        client.get("/v1/messages/nowhere", cast_to=object)
    with Server(millrace, environment={"MILLRACE_API_KEYS": "team:key-team-0123456789abcdef"}) as server:
        with pytest.raises(anthropic.AuthenticationError):
            ask(client_of(server))
        assert ask(anthropic.Anthropic(base_url=server.url, api_key="key-team-0123456789abcdef")).content
        assert ask(anthropic.Anthropic(base_url=server.url, auth_token="key-team-0123456789abcdef")).content


def test_leaving_a_stream_cancels_it(millrace):
    with Server(millrace) as server:
        with client_of(server).messages.stream(model="tiny", messages=[user("Tell me a story.")], max_tokens=60000,
                                               extra_body={"ignore_eos": True}) as stream:
            next(iter(stream.text_stream))
            server.wait(lambda state: state["running"], "nothing runs")
        assert server.wait_idle()["pages"]["in_use"] == 0
