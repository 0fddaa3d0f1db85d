"""Sends prompts to the SDK, each in a new session, and denies all permission requests."""

import asyncio
import json
import sys

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultDeny

program, given = sys.argv[1:]
given = json.loads(given)


async def deny(_tool, _input, _context):
    return PermissionResultDeny(message="no")


async def run(prompt):
    extra = dict(given["extra"])
    if given["mode"] == "bypassPermissions":
        extra["allow-dangerously-skip-permissions"] = None
    options = ClaudeAgentOptions(
        cli_path=program, permission_mode=given["mode"], extra_args=extra, can_use_tool=deny
    )
    async with ClaudeSDKClient(options) as client:
        await client.query(prompt)
        async for _ in client.receive_response():
            pass


async def main():
    for prompt in given["prompts"]:
        await run(prompt)
    print("all done")


asyncio.run(main())
