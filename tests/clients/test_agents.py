"""Real agent programs at the server: each does a task of two tools, and from its second request on no history is
computed again. With MILLRACE_CAPTURE=1 what they send becomes the captures that test_captures.py replays."""

import json
import os
import pathlib
import subprocess
import sys

import captures
import pytest
from recorder import Recorder
from serving import call

HERE = pathlib.Path(__file__).parent
TASK = "Look at the wheel and feel the stone."
SLOWLY, WARM = "the wheel turns slowly", "the stone is warm"
DONE = "The wheel turns slowly and the stone is warm."
OURS = (TASK, SLOWLY, WARM, DONE)
# Tokens of a result and what the template puts around it, with what is not worth computing ahead.
NEW = 64


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "wheel.txt").write_text(SLOWLY + "\n")
    return tmp_path / "work"


def environment(home, **more):
    """Nothing of the person's who runs the tests: no keys, no settings, no proxies."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **more}


def run(script, *args, **options):
    ran = subprocess.run([sys.executable, HERE / script, *map(str, args)], capture_output=True, text=True, timeout=300,
                         stdin=subprocess.DEVNULL, **options)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def events(reply):
    return [json.loads(line[5:]) for line in reply.splitlines() if line.startswith("data:") and line[5:].strip() != "[DONE]"]


def anthropic_usage(one):
    usage = next(event["message"]["usage"] for event in events(one["reply"]) if event["type"] == "message_start")
    computed = usage["input_tokens"] + usage["cache_creation_input_tokens"]
    return computed, computed + usage["cache_read_input_tokens"]


def test_claude_code(scripted, folder):
    pytest.importorskip("claude_agent_sdk")
    is_capture = "MILLRACE_CAPTURE" in os.environ
    says = [call("Read", file_path=str(folder / "wheel.txt")), call("Bash", command=f"echo {WARM}", description="Feel it"), DONE]
    server = scripted(("Primary working directory", says[0]), (SLOWLY, says[1]), (WARM, says[2]), (None, "Mill"), threads=2)
    with Recorder(server.port) as recorder:
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1",
                 "DISABLE_ERROR_REPORTING": "1"}
        tools = [] if is_capture else ["Read", "Bash"]  # all of them are 15,000 tokens
        did = run("agent_claude_code.py", folder, TASK, *tools, cwd=folder,
                  env=environment(folder.parent, ANTHROPIC_BASE_URL=recorder.url, ANTHROPIC_AUTH_TOKEN="none", **quiet))
        asked = [one for one in recorder.asked("/v1/messages") if TASK in json.dumps(one["body"])]
    assert [one.get("tool") for one in did if "tool" in one] == ["Read", "Bash"]
    assert did[-1] == {"result": DONE, "is_error": False}
    assert len(asked) == 3 and all(one["status"] == 200 for one in asked)
    for one in asked[1:]:
        computed, n_prompt = anthropic_usage(one)
        assert n_prompt > 2000 and computed < NEW
    if is_capture:
        version = asked[0]["headers"]["user-agent"]
        captures.save("claude_code", f"recorded from {version} by test_agents.py", folder, asked, says, OURS)


def responses_usage(one):
    usage = events(one["reply"])[-1]["response"]["usage"]
    return usage["input_tokens"] - usage["input_tokens_details"]["cached_tokens"], usage["input_tokens"]


def test_codex(scripted, folder):
    codex = pytest.importorskip("codex_cli_bin").bundled_codex_path()
    says = [call("exec_command", cmd="cat wheel.txt"), call("get_goal"), DONE]
    server = scripted((TASK, says[0]), (SLOWLY, says[1]), ("goal", says[2]), (None, "Mill"), threads=2)
    with Recorder(server.port) as recorder:
        provider = f'{{name="millrace",base_url="{recorder.url}/v1",wire_api="responses",stream_max_retries=0}}'
        options = ["-c", "model_provider=millrace", "-c", f"model_providers.millrace={provider}", "-c", "analytics.enabled=false",
                   "-c", "check_for_update_on_startup=false"]
        ran = subprocess.run([codex, "exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", "-m", "tiny", *options,
                              TASK], cwd=folder, env=environment(folder.parent), stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=300)
        asked = recorder.asked("/v1/responses")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    items = [event["item"] for event in map(json.loads, ran.stdout.splitlines()) if event["type"] == "item.completed"]
    assert [item["aggregated_output"].strip() for item in items if item["type"] == "command_execution"] == [SLOWLY]
    assert items[-1]["type"] == "agent_message" and items[-1]["text"] == DONE
    assert len(asked) == 3 and all(one["status"] == 200 for one in asked)
    for one in asked[1:]:
        computed, n_prompt = responses_usage(one)
        assert n_prompt > 2000 and computed < 2 * NEW  # it writes some lines around each result
    if "MILLRACE_CAPTURE" in os.environ:
        captures.save("codex", f"recorded from {asked[0]['headers']['user-agent']} by test_agents.py", folder, asked, says, OURS)


def test_smolagents(scripted):
    """It writes its own history as text of its own, which is new each time; what came before is not."""
    smolagents = pytest.importorskip("smolagents")

    class Sense(smolagents.Tool):
        inputs = {"thing": {"type": "string", "description": "Its name."}}
        output_type = "string"
        skip_forward_signature_validation = True

        def __init__(self, name, finds):
            self.name, self.description, self.finds = name, f"To {name} a thing.", finds
            super().__init__()

        def forward(self, thing):
            return self.finds

    server = scripted((TASK, call("look", thing="wheel")), (SLOWLY, call("feel", thing="stone")),
                      (WARM, call("final_answer", answer=DONE)))
    with Recorder(server.port) as recorder:
        model = smolagents.OpenAIServerModel("tiny", api_base=f"{recorder.url}/v1", api_key="none")
        agent = smolagents.ToolCallingAgent(tools=[Sense("look", SLOWLY), Sense("feel", WARM)], model=model, max_steps=4,
                                            verbosity_level=0)
        assert agent.run(TASK) == DONE
        usages = [json.loads(one["reply"])["usage"] for one in recorder.asked("/v1/chat/completions")]
    assert len(usages) == 3
    for before, usage in zip(usages, usages[1:]):
        assert usage["prompt_tokens_details"]["cached_tokens"] >= before["prompt_tokens"] - 1
