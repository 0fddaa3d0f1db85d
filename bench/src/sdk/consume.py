"""Reads the fake engine's stream with the official Python SDK and prints what that cost."""

import asyncio
import json
import os
import resource

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, StreamEvent, query


def cpu_us() -> int:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return int((usage.ru_utime + usage.ru_stime) * 1e6)


async def main() -> None:
    options = ClaudeAgentOptions(cli_path=os.environ["FAKE_ENGINE"], include_partial_messages=True)
    deltas = letters = results = 0
    start = cpu_us()
    async for message in query(prompt="Say hello", options=options):
        if isinstance(message, StreamEvent):
            if message.event["type"] == "content_block_delta":
                deltas += 1
                letters += len(message.event["delta"]["text"])
        elif isinstance(message, ResultMessage):
            results += 1
    cost = cpu_us() - start
    print(json.dumps({"cpu_us": cost, "deltas": deltas, "letters": letters, "results": results}))


asyncio.run(main())
