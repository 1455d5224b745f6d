"""The tables beside llama.cpp in README.md, docs/numbers.md and docs/serving.md are those that the committed measurements
give: every row of them is one that `--from FILE --markdown` prints."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# (the tool, what it measured, a text, what its rows begin with, how many there are at least)
TABLES = [("speed.py", "llamacpp.json", "README.md", r"\| Q\d", 3), ("speed.py", "llamacpp.json", "docs/numbers.md", r"\| Q\d", 4),
          ("server.py", "llama-server.json", "docs/serving.md", r"\| (\d+ (chats|agents) of|the longest of)", 3)]


def rows_of(tool, measured):
    command = [sys.executable, ROOT / "tools/compare" / tool, "--from", ROOT / "docs/measured" / measured, "--markdown"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def main():
    wrong = []
    for tool, measured, text, begins, least in TABLES:
        printed = rows_of(tool, measured)
        rows = [line for line in (ROOT / text).read_text().splitlines() if re.match(begins, line)]
        wrong += [f"{text}: not what {measured} gives: {row}" for row in rows if row not in printed]
        if len(rows) < least:
            wrong.append(f"{text}: {len(rows)} rows begin like {begins}, {least} or more were expected")
    print("\n".join(wrong) or "every row is as it was measured")
    sys.exit(1 if wrong else 0)


main()
