"""What agent programs sent once, sent again: every request is understood, and each goes on from the one before."""

import captures
import pytest

PATHS = sorted(captures.FOLDER.glob("*.json"))
NEW = 96  # tokens of a tool's result, and what the template puts around it


def usage_of(answer):
    usage = answer["usage"]
    if "input_tokens_details" in usage:
        return usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]
    if "input_tokens" in usage:
        cached = usage["cache_read_input_tokens"]
        return usage["input_tokens"] + usage["cache_creation_input_tokens"] + cached, cached
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


def whole(data):
    """The answer with its usage, out of a stream of any dialect."""
    out = {}
    for _, event in data:
        if event == "[DONE]":
            continue
        if "usage" in event.get("message", {}):
            out = event["message"]
        for one in (event, event.get("response") or {}):
            if one.get("usage"):
                out = {**out, "usage": {**out.get("usage", {}), **one["usage"]}}
    return out


@pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])
def test_replay(scripted, path):
    requests = captures.load(path)
    server = scripted(*(("", one["say"]) for one in requests), threads=2)
    for i, one in enumerate(requests):
        if one["body"].get("stream"):
            answer = whole(server.events(one["path"], one["body"], **one["headers"]))
        else:
            status, answer = server.ask(one["path"], one["body"], **one["headers"])
            assert status == 200, answer
        n_prompt, cached = usage_of(answer)
        assert n_prompt > 500
        assert i == 0 or n_prompt - cached < NEW
