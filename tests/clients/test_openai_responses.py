"""OpenAI's Responses and completions as the `openai` package sees them."""

import json

import openai
import pydantic
import pytest
from serving import call
from test_openai_sdk import client_of

WEATHER = {"type": "function", "name": "get_weather", "description": "The weather of a city.", "strict": False,
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


class Thing(pydantic.BaseModel):
    color: str = pydantic.Field(pattern="^(red|green)$")
    count: int = pydantic.Field(ge=0, le=9)


@pytest.fixture(scope="module")
def client(plain):
    return client_of(plain)


def test_a_response(client):
    answer = client.responses.create(model="tiny", instructions="Be kind.", input="Hello", max_output_tokens=12, temperature=0,
                                     store=False)
    assert answer.output_text and answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens" and answer.usage.output_tokens == 12


def test_a_stream(scripted):
    client = client_of(scripted((None, "It is fine.")))
    with client.responses.stream(model="tiny", input="Hello") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert kinds[0] == "response.created" and kinds[-1] == "response.completed"
    assert {"response.output_item.added", "response.output_text.delta", "response.output_item.done"} <= set(kinds)
    assert final.output_text == "It is fine." and final.status == "completed"


@pytest.mark.parametrize("stream", [False, True])
def test_a_round_of_tools(scripted, stream):
    client = client_of(scripted(("How is", call("get_weather", city="Paris") + call("get_weather", city="Rome")),
                                ("sunny", "It is sunny.")))
    history = [{"role": "user", "content": "How is it there?"}]

    def ask():
        if not stream:
            return client.responses.create(model="tiny", input=history, tools=[WEATHER], store=False)
        with client.responses.stream(model="tiny", input=history, tools=[WEATHER], store=False) as events:
            return events.get_final_response()

    first = ask()
    calls = [item for item in first.output if item.type == "function_call"]
    assert [json.loads(one.arguments)["city"] for one in calls] == ["Paris", "Rome"]
    history += first.output
    history += [{"type": "function_call_output", "call_id": one.call_id, "output": "sunny"} for one in calls]
    second = ask()
    assert second.output_text == "It is sunny."
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.input_tokens


def test_parse_gives_an_object(client):
    answer = client.responses.parse(model="tiny", input="A thing", text_format=Thing, max_output_tokens=60)
    assert answer.output_parsed.color in ("red", "green")


def test_what_needs_a_store_is_refused(client):
    for field in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
        with pytest.raises(openai.BadRequestError) as caught:
            client.responses.create(model="tiny", input="Hello", **field)
        assert caught.value.param == next(iter(field))


def test_completions(client):
    whole = client.completions.create(model="tiny", prompt="Once upon a time", max_tokens=12, seed=7)
    assert whole.choices[0].text and whole.usage.completion_tokens == 12
    chunks = client.completions.create(model="tiny", prompt="Once upon a time", max_tokens=12, seed=7, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == whole.choices[0].text


def test_completions_of_several_prompts(client):
    answer = client.completions.create(model="tiny", prompt=["Once", "Twice"], n=2, max_tokens=4)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    for prompt in ([-1], [10**9], [[]], []):
        with pytest.raises(openai.BadRequestError):
            client.completions.create(model="tiny", prompt=prompt, max_tokens=4)
