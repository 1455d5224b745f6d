"""OpenAI's Responses in the background, which are jobs, as the `openai` package calls them."""

import time

import openai
import pytest
from serving import PATIENCE_S, Server, call
from test_openai_responses import WEATHER
from test_openai_sdk import client_of


@pytest.fixture(scope="module")
def client(plain):
    return client_of(plain)


def long_one(client, n=3000, **options):
    return client.responses.create(model="tiny", input="Tell me a story.", max_output_tokens=n, background=True,
                                   extra_body={"ignore_eos": True, "seed": 3}, **options)


def wait(client, response):
    deadline = time.monotonic() + PATIENCE_S
    while response.status in ("queued", "in_progress"):
        assert time.monotonic() < deadline, response
        time.sleep(0.05)
        response = client.responses.retrieve(response.id)
    return response


def test_create_and_retrieve(client):
    made = client.responses.create(model="tiny", input="Hello", max_output_tokens=8, background=True, temperature=0)
    assert made.status in ("queued", "in_progress") and made.background and made.id.startswith("resp_")
    done = wait(client, made)
    here = client.responses.create(model="tiny", input="Hello", max_output_tokens=8, temperature=0)
    assert done.status == "incomplete" and done.output_text == here.output_text
    assert done.usage.output_tokens == 8 and done.background


def test_a_stream_goes_on_where_it_broke_off(client):
    seen = []
    with long_one(client, stream=True) as stream:
        for event in stream:
            seen.append(event)
            if event.sequence_number == 40:
                break
    id = seen[0].response.id
    seen += client.responses.retrieve(id, stream=True, starting_after=40)
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert seen[-1].type == "response.incomplete"
    text = "".join(event.delta for event in seen if event.type == "response.output_text.delta")
    assert text == seen[-1].response.output_text == client.responses.retrieve(id).output_text


def test_cancel(client):
    made = long_one(client, n=20_000)
    assert client.responses.cancel(made.id).status == "cancelled"
    assert client.responses.cancel(made.id).status == "cancelled"
    assert client.responses.retrieve(made.id).status == "cancelled"
    events = list(client.responses.retrieve(made.id, stream=True))
    assert events[-1].response.status == "cancelled"
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_tools(scripted):
    client = client_of(scripted((None, call("get_weather", city="Paris"))))
    done = wait(client, client.responses.create(model="tiny", input="How is it?", tools=[WEATHER], background=True))
    again = client.responses.retrieve(done.id)
    assert done.output[0].type == "function_call" and done.output[0].call_id == again.output[0].call_id


def test_what_cannot_be_is_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="tiny", input="Hello", background=True, store=False)
    assert caught.value.param == "store"
    for id in ("resp_" + "0" * 32, "resp_1", "job_1"):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(id)
    here = client.responses.create(model="tiny", input="Hello", max_output_tokens=4)
    with pytest.raises(openai.NotFoundError):  # only those in the background are stored
        client.responses.retrieve(here.id)


def test_without_jobs_it_says_so(millrace):
    with Server(millrace, "--jobs", "off") as server, pytest.raises(openai.InternalServerError) as caught:
        client_of(server).with_options(max_retries=0).responses.create(model="tiny", input="Hi", background=True)
    assert "--jobs off" in str(caught.value)
