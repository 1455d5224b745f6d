"""The server as `langchain-openai` sees it."""

import langchain_openai
import pydantic
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from serving import call


class Thing(pydantic.BaseModel):
    """A thing."""
    color: str = pydantic.Field(pattern="^(red|green)$")
    count: int = pydantic.Field(ge=0, le=9)


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def model_of(server, **options):
    return langchain_openai.ChatOpenAI(base_url=f"{server.url}/v1", api_key="none", model="tiny", max_retries=0, **options)


def test_an_answer(plain):
    answer = model_of(plain, max_tokens=12, temperature=0).invoke("Hello")
    assert answer.content and answer.usage_metadata["output_tokens"] == 12
    assert answer.response_metadata["system_fingerprint"]


def test_a_stream_with_usage(plain):
    whole = None
    for chunk in model_of(plain, max_tokens=12, temperature=0, stream_usage=True).stream("Hello"):
        whole = chunk if whole is None else whole + chunk
    assert whole.content and whole.usage_metadata["output_tokens"] == 12
    assert whole.usage_metadata["input_token_details"]["cache_read"] >= 0


def test_a_batch(plain):
    answers = model_of(plain, max_tokens=4).batch([f"Tell me {i} things." for i in range(8)])
    assert all(answer.content for answer in answers)


@pytest.mark.parametrize("stream", [False, True])
def test_a_round_of_tools(scripted, stream):
    server = scripted(("How is", call("get_weather", city="Paris")), ("sunny in Paris", "It is sunny."))
    model = model_of(server, streaming=stream).bind_tools([get_weather])
    messages = [HumanMessage("How is it there?")]
    first = model.invoke(messages)
    made, = first.tool_calls
    assert made["name"] == "get_weather" and made["args"] == {"city": "Paris"}
    messages += [first, ToolMessage(get_weather.invoke(made["args"]), tool_call_id=made["id"])]
    assert model.invoke(messages).content == "It is sunny."


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(plain, method):
    thing = model_of(plain, max_tokens=100).with_structured_output(Thing, method=method).invoke("A thing")
    assert thing.color in ("red", "green")
