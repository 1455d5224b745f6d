"""One task for Claude Code, through `claude-agent-sdk`; test_agents.py runs it in an environment of its own.
Usage: agent_claude_code.py FOLDER PROMPT [TOOL...]. Prints what the agent did as JSON lines."""

import asyncio
import json
import sys

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ResultMessage, TextBlock, ToolUseBlock, query


async def main(folder, prompt, *tools):
    options = ClaudeAgentOptions(cwd=folder, model="tiny", tools=list(tools) or None, allowed_tools=["Read", "Bash"], max_turns=6,
                                 setting_sources=[])
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print(json.dumps({"text": block.text}))
                elif isinstance(block, ToolUseBlock):
                    print(json.dumps({"tool": block.name, "input": block.input}))
        elif isinstance(message, ResultMessage):
            print(json.dumps({"result": message.result, "is_error": message.is_error}))


asyncio.run(main(*sys.argv[1:]))
