"""The page of web/ in a real browser, against a scripted server. MILLRACE_SCREENSHOTS=FOLDER also saves what it
looks like."""

import json
import os
import pathlib
import re
import threading
import time

import pytest
from page_browser import PHONE, Opened, ask, browser, expect, opened, page, send, server  # fixtures among them
from page_server import ENGINE, WEB, answer, chunk

# --- chat ---


def test_an_answer_streams(page, server):
    gate = threading.Event()

    def script(body):
        yield from list(answer("Hello"))[:3]
        gate.wait(10)
        yield from list(answer(", world"))[2:]

    server.script = script
    send(page, "Hi")
    body = page.locator(".assistant .markdown")
    expect(body).to_have_text("Hello")
    expect(page.locator("#send")).to_have_attribute("aria-label", "Stop")
    assert page.locator("#status").text_content() == "Answering"
    gate.set()
    expect(body).to_have_text("Hello, world")
    expect(page.locator("#send")).to_have_attribute("aria-label", "Send")
    assert page.locator("#status").text_content() == "Answer: Hello, world"
    stats = page.locator(".stats summary")
    expect(stats).to_contain_text("1,234 prompt")
    expect(stats).to_contain_text("1,200 cached (97 %)")
    expect(stats).to_contain_text("56 completion")
    expect(stats).to_contain_text("tokens/s")
    expect(stats).to_contain_text("to first token")
    assert "Seed: 99\nFingerprint: fp_test" in stats.get_attribute("title")
    asked = server.asked[0]
    assert asked["stream"] and asked["stream_options"] == {"include_usage": True}
    assert asked["messages"] == [{"role": "user", "content": "Hi"}]
    assert "temperature" not in asked


def test_keys_write_and_send(page, server):
    page.fill("#message", "one")
    page.press("#message", "Shift+Enter")
    page.keyboard.type("two")
    page.press("#message", "Enter")
    expect(page.locator(".user .bubble")).to_have_text("one\ntwo")
    expect(page.locator("#message")).to_have_value("")
    page.press("#message", "Enter")  # nothing to send
    assert len(server.asked) == 1


@pytest.mark.parametrize("how", ["Escape", "button"])
def test_stop_keeps_what_came(page, server, how):
    def script(body):
        yield chunk({"content": "Some"})
        while True:
            time.sleep(0.02)
            yield ": keep-alive\n\n"

    server.script = script
    send(page, "Hi")
    expect(page.locator(".assistant .markdown")).to_have_text("Some")
    page.keyboard.press("Escape") if how == "Escape" else page.click("#send")
    expect(page.locator(".note")).to_have_text("Stopped.")
    assert server.gone.wait(10), "the connection was not closed"
    server.script = lambda body: answer("More")
    ask(page, "Go on")
    assert [m["content"] for m in server.asked[-1]["messages"]] == ["Hi", "Some", "Go on"]


def test_retry_asks_the_same_again(page, server):
    first = ask(page)
    server.script = lambda body: answer("Another.")
    first.get_by_role("button", name="Try again").click()
    expect(page.locator(".assistant .markdown")).to_have_text("Another.")
    assert server.asked[0]["messages"] == server.asked[1]["messages"]


def test_the_last_message_can_be_edited(page, server):
    ask(page, "one")
    ask(page, "two")
    assert page.get_by_role("button", name="Edit and send again").count() == 1
    page.locator(".user").last.hover()
    page.get_by_role("button", name="Edit and send again").click()
    page.get_by_label("Edit your message").fill("three")
    page.keyboard.press("Escape")
    expect(page.locator(".user .bubble").last).to_have_text("two")
    page.get_by_role("button", name="Edit and send again").click()
    page.get_by_label("Edit your message").fill("three")
    page.keyboard.press("Enter")
    expect(page.locator(".assistant")).to_have_count(2)
    expect(page.locator(".assistant .markdown").last).to_have_text("Hello.")
    assert [m["content"] for m in server.asked[-1]["messages"]] == ["one", "Hello.", "three"]


def test_chats_are_kept(opened, page, server):
    ask(page, "first chat")
    page.click("#new-chat")
    ask(page, "second chat")
    titles = page.locator("#chat-list .title")
    expect(titles).to_have_text(["second chat", "first chat"])
    page.reload()
    expect(page.locator(".bubble")).to_have_text("second chat")
    expect(page.locator(".stats")).to_contain_text("1,234 prompt")
    titles.nth(1).click()
    expect(page.locator(".bubble")).to_have_text("first chat")
    page.get_by_role("button", name="Delete chat: first chat").click()
    expect(titles).to_have_text(["second chat"])
    page.get_by_role("button", name="Undo").click()
    expect(titles).to_have_text(["second chat", "first chat"])
    other = opened.open()
    ask(other, "from another tab")
    expect(titles.first).to_have_text("from another tab")
    titles.first.click()
    ask(other, "and more")
    expect(page.locator(".bubble")).to_have_text(["from another tab", "and more"])


def test_a_chat_deleted_while_it_runs_stays_deleted(page, server):
    def script(body):
        while True:
            time.sleep(0.02)
            yield chunk({"content": "on "})

    server.script = script
    send(page, "endless")
    expect(page.locator(".assistant .markdown")).to_contain_text("on on")
    page.get_by_role("button", name="Delete chat: endless").click()
    assert server.gone.wait(10)
    page.wait_for_timeout(100)
    expect(page.locator("#chat-list li")).to_have_count(0)
    assert page.evaluate("Object.keys(localStorage)") == []


def test_an_answer_goes_on_while_another_chat_is_shown(page, server):
    gate = threading.Event()

    def script(body):
        yield chunk({"content": "one "})
        gate.wait(10)
        yield from answer("two")

    server.script = script
    send(page, "slow")
    expect(page.locator(".assistant .markdown")).to_have_text("one")
    page.click("#new-chat")
    expect(page.locator("#send")).to_have_attribute("aria-label", "Send")
    page.locator("#chat-list .title").click()
    expect(page.locator(".assistant .markdown")).to_have_text("one")
    page.click("#new-chat")
    gate.set()
    expect(page.locator("#chat-list .running")).to_have_count(0)
    page.locator("#chat-list .title").click()
    expect(page.locator(".assistant .markdown")).to_have_text("one two")


def test_settings_go_into_the_request(page, server):
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Temperature").fill("0.7")
    page.get_by_label("Min-p").fill("0.003")
    page.get_by_label("Top-k").fill("40")
    page.get_by_label("Top-p").fill("7")  # out of range: not sent
    page.get_by_label("Seed").fill("12345")
    page.get_by_label("Max tokens").fill("100")
    page.get_by_label("Reasoning").select_option("off")
    page.get_by_label("System prompt").fill("Be brief.")
    ask(page)
    asked = server.asked[0]
    assert {k: asked[k] for k in ("temperature", "min_p", "top_k", "seed", "max_tokens", "chat_template_kwargs")} == {
        "temperature": 0.7, "min_p": 0.003, "top_k": 40, "seed": 12345, "max_tokens": 100,
        "chat_template_kwargs": {"enable_thinking": False}}
    assert "top_p" not in asked
    assert asked["messages"][0] == {"role": "system", "content": "Be brief."}
    page.reload()
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_label("Temperature")).to_have_value("0.7")
    page.get_by_role("button", name="Reset to defaults").click()
    ask(page)
    assert "temperature" not in server.asked[1] and "chat_template_kwargs" not in server.asked[1]


def test_reasoning_folds_when_the_answer_begins(page, server):
    gate = threading.Event()

    def script(body):
        yield chunk({"reasoning_content": "Let me <b>think</b>"})
        gate.wait(10)
        yield from answer("Done.")

    server.script = script
    send(page, "Hi")
    box = page.locator("details.reasoning")
    expect(box).to_have_attribute("open", "")
    expect(box.locator(".folded")).to_have_text("Let me <b>think</b>")
    gate.set()
    expect(box).not_to_have_attribute("open", "")
    expect(box.locator("summary")).to_contain_text("Reason")
    ask(page, "Again")
    assert server.asked[1]["messages"][1]["reasoning_content"] == "Let me <b>think</b>"


def test_tools_round_trip(page, server):
    def script(body):
        if body["messages"][-1]["role"] == "tool":
            return answer("It is sunny.")
        call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}
        pieces = [{"index": 0, "function": {"arguments": text}} for text in ('{"city": "Par', 'is"}')]
        return answer(*({"tool_calls": [c]} for c in [call, *pieces]), finish="tool_calls")

    server.script = script
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Insert an example").click()
    turn = ask(page, "Weather?")
    assert server.asked[0]["tools"][0]["function"]["name"] == "get_weather"
    expect(turn.locator(".call .name")).to_have_text("get_weather")
    expect(turn.locator(".call pre")).to_have_text('{\n  "city": "Paris"\n}')
    turn.get_by_label("Result of get_weather").fill("sunny <script>")
    turn.get_by_role("button", name="Send results").click()
    expect(page.locator(".assistant .markdown").last).to_have_text("It is sunny.")
    assert server.asked[1]["messages"][-2:] == [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny <script>"}]
    expect(turn.get_by_role("button", name="Send results")).to_be_hidden()


def test_tools_that_are_not_json_are_refused(page, server):
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Tools, as JSON").fill("[{")
    expect(page.locator("#tools-error")).to_contain_text("not valid JSON")
    send(page, "Hi")
    expect(page.locator("#toast")).to_contain_text("not valid JSON")
    assert server.asked == []


# --- errors ---


def test_the_key_is_asked_for_and_kept(opened, server):
    server.key = "right"
    opened.allowed = ["status of 401"]
    page = opened.open(wait=False)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("asks for an API key")
    page.get_by_label("API key").last.fill("wrong")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("refused the last key")
    page.get_by_label("API key").last.fill("right")
    page.get_by_role("button", name="Use key").click()
    expect(page.locator("#model-name")).to_have_text("SmolLM2-135M-Instruct-Q8_0")
    ask(page)
    page.reload()
    ask(page)
    expect(dialog).to_be_hidden()
    assert page.evaluate("JSON.stringify(localStorage)").count("right") == 0
    server.key = "new"
    send(page, "Hi")
    expect(dialog).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".error").last).to_have_text("Incorrect API key provided.")


def test_an_error_in_mid_stream_is_shown(page, server):
    error = "data: " + json.dumps({"error": {"message": "Out of <b>pages</b>."}}) + "\n\n"
    server.script = lambda body: iter([chunk({"content": "Half"}), error])
    turn = ask(page)
    expect(turn.locator(".error")).to_have_text("Out of <b>pages</b>.")
    expect(turn.locator(".markdown")).to_have_text("Half")
    server.script = lambda body: iter([chunk({"content": "Half"})])
    expect(ask(page).locator(".error")).to_contain_text("closed before the answer ended")
    server.script = lambda body: iter(["data: {oops\n\n"])
    expect(ask(page).locator(".error")).to_contain_text("not JSON")
    server.script = lambda body: answer("Whole.")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".assistant .markdown").last).to_have_text("Whole.")
    assert [m["content"] for m in server.asked[-1]["messages"]] == ["Hi", "Half", "Hi", "Half", "Hi"]


def test_an_error_before_the_stream_is_shown(opened, page, server):
    opened.allowed = ["status of 400"]
    server.script = lambda body: (400, "The prompt has 9,000 tokens; the context holds 8,192.")
    expect(ask(page).locator(".error")).to_have_text("The prompt has 9,000 tokens; the context holds 8,192.")
    server.script = lambda body: answer("Short enough.")
    ask(page, "Less")
    assert server.asked[1]["messages"] == [{"role": "user", "content": "Hi\n\nLess"}]


def test_events_are_split_anywhere(page, server):
    """Bytes arrive as they like: in the middle of a character, of a line's end, of an event."""
    text = chunk({"content": "Grüße, 世界"}).replace("\n", "\r\n").replace("\\u00fc", "ü")
    raw = ("event: message\r\n: comment\r\nid: 4\r\n" + text + "data:{}\n\n" + "data: [DONE]\r\r").encode()

    def script(body):
        for i in range(len(raw)):
            yield raw[i : i + 1]
        time.sleep(0.1)

    server.script = script
    turn = ask(page)
    expect(turn.locator(".markdown")).to_have_text("Grüße, 世界")
    expect(turn.locator(".error")).to_be_hidden()


# --- the engine ---


def test_the_engine_is_shown_while_it_is_looked_at(page, server):
    assert server.polls == 0
    page.get_by_role("button", name="Engine").click()
    panel = page.get_by_role("complementary", name="Engine")
    for text in ["413 tokens/s", "agent-12", "128 tokens · 2,310 prompt (2,240 cached)", "2,560 of 7,000 prompt", "ms median", "4,096 pages",
                 "89.4 % of prompt tokens", "214 nodes", "412 hits", "fp_3c1a9e77d2", "1 h 23 min", "<img src=x onerror=alert(1)>"]:
        expect(panel).to_contain_text(text)
    assert panel.locator("svg.chart path.line").count() >= 1
    assert panel.locator(".tree li").count() == len(ENGINE["tree"]["top"])
    before = server.polls
    page.wait_for_timeout(1500)
    assert before < server.polls <= before + 3
    page.get_by_role("button", name="Close engine view").click()
    page.wait_for_timeout(200)
    before = server.polls
    page.wait_for_timeout(1500)
    assert server.polls == before


def test_no_poll_while_the_page_is_hidden(page, server):
    page.get_by_role("button", name="Engine").click()
    expect(page.locator("#engine-live")).to_be_visible()
    hide = "(h) => (Object.defineProperty(document, 'hidden', {value: h, configurable: true}), document.dispatchEvent(new Event('visibilitychange')))"
    page.evaluate(hide, True)
    page.wait_for_timeout(200)
    before = server.polls
    page.wait_for_timeout(1300)
    assert server.polls == before
    page.evaluate(hide, False)
    page.wait_for_timeout(300)
    assert server.polls > before


@pytest.mark.parametrize("status, text", [(403, "needs the admin key"), (404, "does not show its engine")])
def test_the_engine_panel_says_why_it_is_empty(opened, page, server, status, text):
    opened.allowed = [f"status of {status}"]
    server.engine_status = status
    page.get_by_role("button", name="Engine").click()
    expect(page.locator("#engine-note")).to_contain_text(text)
    page.wait_for_timeout(1300)
    assert server.polls == 1


# --- how it looks and who can use it ---


def test_on_a_phone(browser, server):
    opened = Opened(browser, server, **PHONE)
    page = opened.open()
    server.script = lambda body: answer(CONVERSATION + "\n```\n" + "wide " * 100 + "\n```\n")
    page.fill("#message", "Hi")
    page.tap("#send")
    expect(page.locator(".stats")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.tap("[aria-controls=chats]")
    expect(page.locator("#chats")).to_be_in_viewport()
    page.locator("#chat-list .title").tap()
    expect(page.locator("#chats")).to_be_hidden()
    page.tap("[aria-controls=engine-panel]")
    expect(page.locator("#engine-live")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#engine-panel")).to_be_hidden()
    opened.close()


def test_with_the_keyboard_alone(page, server):
    skip = page.get_by_role("link", name="Skip to the message box")
    expect(skip).not_to_be_in_viewport()
    skip.focus()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#message")).to_be_focused()
    page.keyboard.type("Hi")
    page.keyboard.press("Enter")
    expect(page.locator(".stats")).to_be_visible()
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "(() => { const e = document.activeElement, s = getComputedStyle(e); return [e.ariaLabel || e.textContent, s.outlineStyle]; })()")
        seen.add(name.strip())
        assert outline != "none" or name.strip() == "" or page.evaluate("document.activeElement === document.body"), name
    assert {"Try again", "Copy answer", "Engine", "Settings", "New chat"} <= seen


def test_landmarks_and_names(page, server):
    ask(page)
    for role, name in [("banner", None), ("navigation", "Chats"), ("main", None)]:
        assert page.get_by_role(role, **({"name": name} if name else {})).count() == 1, role
    page.get_by_role("button", name="Settings").click()
    assert page.get_by_role("complementary", name="Settings").count() == 1
    nameless = page.evaluate("""[...document.querySelectorAll('button, input, select, textarea')].filter((e) =>
        !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML)""")
    assert nameless == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_themes(opened, page):
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(background)
    assert light != dark
    page.click("#theme")
    assert page.evaluate(background) == light
    page.reload()
    assert page.evaluate(background) == light
    page.click("#theme")
    page.emulate_media(color_scheme="light")
    assert page.evaluate(background) == dark


def test_the_files_are_small_and_plain():
    files = [f for f in WEB.iterdir() if f.is_file()]
    assert sum(f.stat().st_size for f in files) < 100 * 1024
    for file in files:
        text = file.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), file
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)[a-z]", text), file
    assert not re.search(r"\sstyle=|\son\w+=|<script(?![^>]*src)|<style", (WEB / "index.html").read_text())


CONVERSATION = """The prefix tree keeps the **KV pages** of every prompt that was computed, so a second turn starts where the first one ended.

## How a request finds its prefix

1. The prompt is turned into token ids.
2. The tree is walked from its root, page by page.
3. What matches is *shared*; only the rest is computed.

| Phase | Tokens | Time |
|:------|-------:|-----:|
| from the cache | 2,240 | 0.1 ms |
| computed | 70 | 21 ms |

```cpp
Result<Prefix> Tree::find(std::span<const int32_t> tokens) const {
  auto* node = root_;  // of this key's salt
  while (auto* next = node->child(tokens)) node = next;
  return Prefix{node, node->depth()};
}
```

> A page is immutable once it is full, which is why sharing it is safe.

See [the notes](https://example.org/pages) for `copy_on_write`.
"""


@pytest.mark.skipif("MILLRACE_SCREENSHOTS" not in os.environ, reason="MILLRACE_SCREENSHOTS names no folder for screenshots")
@pytest.mark.parametrize("device", ["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_screenshots(browser, server, device, scheme):
    folder = pathlib.Path(os.environ["MILLRACE_SCREENSHOTS"])
    size = PHONE if device == "phone" else {"viewport": {"width": 1440, "height": 900}}
    opened = Opened(browser, server, color_scheme=scheme, **size)
    page = opened.open()

    def shoot(name):
        page.wait_for_timeout(250)
        page.screenshot(path=str(folder / f"{device}-{scheme}-{name}.png"))

    def say(text):
        page.fill("#message", text)
        page.click("#send")
        expect(page.locator(".turn.assistant").last).to_have_attribute("aria-busy", "false")

    shoot("welcome")
    server.script = lambda body: answer({"reasoning_content": "The user wants the short version."}, *re.findall(r"\s*\S+", CONVERSATION), pause_s=0.002)
    say("How does the prefix tree work?")
    page.evaluate("document.querySelector('#conversation').scrollTop = 0")
    shoot("answer")
    if device == "desktop":
        page.click("[aria-controls=engine-panel]")
        page.wait_for_timeout(2500)
    shoot("answer-wide")
    call = {"index": 0, "id": "c", "function": {"name": "get_weather", "arguments": '{"city": "Paris", "unit": "celsius"}'}}
    server.script = lambda body: answer("I will look it up.", {"tool_calls": [call]}, finish="tool_calls")
    say("And what is the weather in Paris?\nIn celsius, please.")
    shoot("tools")
    error = "data: " + json.dumps({"error": {"message": "The engine is out of pages."}}) + "\n\n"
    server.script = lambda body: iter([chunk({"content": "It is"}), error])
    say("Never mind.")
    shoot("error")
    if device == "phone":
        page.click("[aria-controls=chats]")
        shoot("chats")
        page.keyboard.press("Escape")
        page.click("[aria-controls=engine-panel]")
        page.wait_for_timeout(2500)
        shoot("engine")
        page.keyboard.press("Escape")
    page.click("[aria-controls=settings-panel]")
    shoot("settings")
    opened.close()
