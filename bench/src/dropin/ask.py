"""Asks once through the official Python SDK and prints how long the first message and the result took to come."""

import asyncio
import json
import os
import time

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, SystemMessage, query


async def main() -> None:
    options = ClaudeAgentOptions(cli_path=os.environ["ENGINE"], model=os.environ["MODEL"])
    figures = {"text": ""}
    start = time.perf_counter_ns()

    def elapsed() -> int:
        return (time.perf_counter_ns() - start) // 1000

    async for message in query(prompt="Say hello", options=options):
        if isinstance(message, SystemMessage) and message.subtype == "init":
            figures.setdefault("init_us", elapsed())
        elif isinstance(message, ResultMessage):
            figures["result_us"] = elapsed()
            figures["text"] = message.result
    figures["end_us"] = elapsed()
    print(json.dumps(figures))


asyncio.run(main())
