"""One prompt through the official Python SDK; prints its messages, one JSON object per line.

Usage: python replay.py <executable> <extra arguments as JSON>
"""

import asyncio
import dataclasses
import json
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query


async def main() -> None:
    executable, extra_args = sys.argv[1:]
    options = ClaudeAgentOptions(
        cli_path=executable,
        extra_args=json.loads(extra_args),
        include_partial_messages=True,
        allowed_tools=["Read"],
    )
    async for message in query(prompt="go", options=options):
        said = getattr(message, "content", None)
        if isinstance(said, list):
            said = [dataclasses.asdict(block) for block in said]
        if isinstance(message, ResultMessage):
            said = message.result
        if getattr(message, "event", None):
            said = message.event.get("delta")
        print(json.dumps([type(message).__name__, getattr(message, "subtype", None), said]))


asyncio.run(main())
