"""What agent programs sent, kept for a replay without them. A capture is a list of {path, headers, body, say}: `say` is
what the model answered, in its own format. All prose of others is replaced by words of ours, and what names a person,
a machine or a session by zeros: the shape of a request is what servers stumble over."""

import hashlib
import json
import pathlib
import random
import re

FOLDER = pathlib.Path(__file__).parent / "captures"
HEADERS = ("anthropic-version", "anthropic-beta", "user-agent", "x-app", "x-claude-code-session-id", "thread-id", "session-id",
           "x-codex-parent-thread-id")
WORDS = "the mill grinds grain by a river where its wheel turns slowly and stone on stone makes flour for bread".split()
LONGEST = 160  # characters kept of a text, and put in the place of another
PROSE = ("text", "description", "instructions", "content", "output", "title")


def filler(text):
    """Words that say nothing: always the same for the same text."""
    rng = random.Random(hashlib.sha256(text.encode()).digest())
    out = ""
    while len(out) < min(len(text), LONGEST):
        out += rng.choice(WORDS) + " "
    return out.strip()


def without_names(text):
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "00000000-0000-0000-0000-000000000000", text)
    return re.sub(r"\b[0-9a-f]{32,}\b", lambda found: "0" * len(found[0]), text)


def scrub(value, ours, key=""):
    """`ours`: words by which a text is known to be the test's own."""
    if isinstance(value, dict):
        return {name: scrub(one, ours, name) for name, one in value.items()}
    if isinstance(value, list):
        return [scrub(one, ours, key) for one in value]
    if not isinstance(value, str):
        return value
    is_ours = any(words in value for words in ours) and len(value) <= LONGEST
    is_prose = key == "description" or (key in PROSE and len(value) > 24)
    if is_prose and not is_ours and not value.startswith("x-anthropic-billing-header:"):
        return filler(value)
    return without_names(value)


def save(name, source, folder, exchanges, says, ours):
    """`source`: where it comes from, for people; `folder`: where the agent worked."""
    FOLDER.mkdir(exist_ok=True)
    requests = [{"path": one["path"], "headers": {key: without_names(value) for key, value in one["headers"].items()
                                                  if key in HEADERS}, "body": scrub(one["body"], ours), "say": say}
                for one, say in zip(exchanges, says, strict=True)]
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in requests)
    text = f'{{"source": {json.dumps(source)}, "requests": [\n{lines}\n]}}\n'
    (FOLDER / f"{name}.json").write_text(text.replace(str(folder), "/mill"))


def load(path):
    return json.loads(path.read_text())["requests"]
