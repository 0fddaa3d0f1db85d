"""Asks once through the official Python SDK and prints how long the first message and the result took to come."""

import asyncio
import json
import os
import time

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SystemMessage, query


async def main() -> None:
    options = ClaudeAgentOptions(cli_path=os.environ["ENGINE"], model=os.environ["MODEL"])
    told = {"text": ""}
    start = time.perf_counter_ns()

    def elapsed() -> int:
        return (time.perf_counter_ns() - start) // 1000

    async for message in query(prompt="Say hello", options=options):
        if isinstance(message, SystemMessage) and message.subtype == "init":
            told.setdefault("init_us", elapsed())
        elif isinstance(message, ResultMessage):
            told["result_us"] = elapsed()
            told["text"] = message.result
    told["end_us"] = elapsed()
    print(json.dumps(told))


asyncio.run(main())
