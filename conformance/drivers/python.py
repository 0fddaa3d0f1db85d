"""Drives the official Python SDK as the runner says: see README.md, "The driver protocol"."""

import asyncio
import dataclasses
import json
import re
import sys
from typing import Any

import claude_agent_sdk as sdk

RUNS: dict[int, "Run"] = {}

BLOCKS = {
    sdk.TextBlock: "text",
    sdk.ThinkingBlock: "thinking",
    sdk.ToolUseBlock: "tool_use",
    sdk.ToolResultBlock: "tool_result",
}
TYPES = {"number": float, "string": str, "boolean": bool}
# Options with other names than in TypeScript, and options that this SDK does not have.
OPTIONS = {"continue": "continue_conversation", "additionalDirectories": "add_dirs"}
ABSENT = {"allowDangerouslySkipPermissions"}
METHODS = {"mcpServerStatus": "get_mcp_status", "initializationResult": "get_server_info"}


def emit(run: int, kind: str, payload: Any) -> None:
    sys.stdout.write(json.dumps({"run": run, kind: payload}, default=plain) + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """What the JSON encoder does not know: the SDK's own types, as they were on the wire."""
    if isinstance(value, sdk.PermissionUpdate):
        return value.to_dict()
    if type(value) in BLOCKS:
        return {"type": BLOCKS[type(value)], **fields(value)}
    if dataclasses.is_dataclass(value):
        return fields(value)
    return repr(value)


def fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def wire(message: Any) -> dict[str, Any]:
    """A message in the shape it had on the wire, as far as the SDK kept it."""
    if isinstance(message, sdk.SystemMessage):
        return message.data
    rest = {name: value for name, value in fields(message).items() if value is not None}
    if isinstance(message, sdk.AssistantMessage):
        inner = {"role": "assistant", "content": rest.pop("content")}
        for name, on_wire in [("model", "model"), ("usage", "usage"), ("message_id", "id"), ("stop_reason", "stop_reason")]:
            if name in rest:
                inner[on_wire] = rest.pop(name)
        return {"type": "assistant", "message": inner, **rest}
    if isinstance(message, sdk.UserMessage):
        return {"type": "user", "message": {"role": "user", "content": rest.pop("content")}, **rest}
    if isinstance(message, sdk.ResultMessage):
        if "model_usage" in rest:
            rest["modelUsage"] = rest.pop("model_usage")
        return {"type": "result", **rest}
    if isinstance(message, sdk.StreamEvent):
        return {"type": "stream_event", **rest}
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(message).__name__).lower()
    return {"type": kind.removesuffix("_message"), **rest}


def snake(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()


def named(error: BaseException) -> dict[str, Any]:
    return {"name": type(error).__name__, "message": str(error)}


class Run:
    def __init__(self, number: int, session: dict[str, Any]) -> None:
        self.number = number
        self.session = session
        self.questions: dict[str, asyncio.Future[Any]] = {}
        self.input: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.connected = asyncio.Event()
        self.client: sdk.ClaudeSDKClient | None = None
        self.task: asyncio.Task[None] | None = None

    async def question(self, kind: str, payload: dict[str, Any]) -> Any:
        """Asks the runner, and waits for its answer however long that takes."""
        number = f"{kind}-{len(self.questions) + 1}"
        answer = asyncio.get_running_loop().create_future()
        self.questions[number] = answer
        emit(self.number, kind, {"id": number, **payload})
        try:
            return await answer
        except asyncio.CancelledError:
            emit(self.number, "withdrawn", {"id": number, "kind": kind})
            raise

    def answer(self, command: dict[str, Any]) -> None:
        future = self.questions[command["id"]]
        if future.done():
            return
        if "error" in command:
            future.set_exception(RuntimeError(command["error"]))
        else:
            future.set_result(command.get("value"))

    async def ask(self, tool: str, given: dict[str, Any], context: sdk.ToolPermissionContext) -> Any:
        kept = {name: value for name, value in fields(context).items() if name != "signal" and value is not None}
        answer = await self.question("ask", {"tool": tool, "input": given, "context": kept})
        if answer["behavior"] == "deny":
            return sdk.PermissionResultDeny(message=answer["message"], interrupt=answer.get("interrupt", False))
        updates = answer.get("updatedPermissions")
        updates = updates and [sdk.PermissionUpdate.from_dict(update) for update in updates]
        return sdk.PermissionResultAllow(updated_input=answer.get("updatedInput"), updated_permissions=updates)

    def hooks(self) -> dict[str, list[sdk.HookMatcher]]:
        events: dict[str, list[sdk.HookMatcher]] = {}
        for hook in self.session["hooks"]:
            async def callback(given: Any, _id: str | None, _context: Any, event: str = hook["event"]) -> Any:
                output = await self.question("hook", {"event": event, "input": given})
                renamed = {"async": "async_", "continue": "continue_"}
                return {renamed.get(name, name): value for name, value in output.items()}

            matcher = {"matcher": hook.get("matcher"), "timeout": hook.get("timeout"), "on_failure": hook.get("onFailure")}
            events.setdefault(hook["event"], []).append(sdk.HookMatcher(hooks=[callback], **matcher))
        return events

    def server(self, name: str, config: dict[str, Any]) -> Any:
        tools = []
        for tool in config["tools"]:
            async def handler(given: Any, called: str = tool["name"]) -> Any:
                return await self.question("tool", {"server": name, "name": called, "arguments": given})

            types = {field: TYPES[kind] for field, kind in tool["fields"].items()}
            notes = tool.get("annotations")
            notes = notes and sdk.ToolAnnotations(**notes)
            tools.append(sdk.tool(tool["name"], tool["description"], types, notes)(handler))
        return sdk.create_sdk_mcp_server(name, config["version"], tools)

    def options(self) -> sdk.ClaudeAgentOptions:
        given = {}
        for name, value in self.session["options"].items():
            if name == "agents":
                value = {key: sdk.AgentDefinition(**agent) for key, agent in value.items()}
            if name not in ABSENT:
                given[OPTIONS.get(name, snake(name))] = value
        options = sdk.ClaudeAgentOptions(
            cli_path=self.session["cli"], cwd=self.session["cwd"], env=self.session["env"], **given
        )
        if self.session["ask"]:
            options.can_use_tool = self.ask
        if self.session["hooks"]:
            options.hooks = self.hooks()
        servers = {name: self.server(name, config) for name, config in self.session["mcp"].items()}
        if servers:
            options.mcp_servers = {**options.mcp_servers, **servers}
        return options

    async def prompts(self) -> Any:
        while (message := await self.input.get()) is not None:
            yield message

    async def query(self) -> None:
        prompt = self.session["prompt"]
        prompt = self.prompts() if prompt is None else prompt  # plain-english: Python
        async for message in sdk.query(prompt=prompt, options=self.options()):
            emit(self.number, "message", wire(message))

    async def converse(self) -> None:
        """As a client: prompts are sent one by one, and the end of the input is the end of the connection."""
        self.client = sdk.ClaudeSDKClient(self.options())
        try:
            await self.client.connect()
            self.connected.set()
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(self.read())
                writing = group.create_task(self.write())
                await asyncio.wait([reading, writing], return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    writing.cancel()
                else:
                    await self.client.disconnect()
        finally:
            await self.client.disconnect()

    async def read(self) -> None:
        async for message in self.client.receive_messages():
            emit(self.number, "message", wire(message))

    async def write(self) -> None:
        while (message := await self.input.get()) is not None:
            content = message["message"].get("content")
            if message.keys() <= {"type", "message", "parent_tool_use_id", "session_id"} and isinstance(content, str):
                await self.client.query(content)
            else:
                await self.client.query(once(message))

    async def play(self) -> None:
        try:
            if self.session["prompt"] is not None or self.session["iterable"]:
                await self.query()
            else:
                await self.converse()
        except BaseExceptionGroup as group:
            emit(self.number, "thrown", named(innermost(group)))
        except Exception as error:
            emit(self.number, "thrown", named(error))
        except asyncio.CancelledError:
            pass
        emit(self.number, "ended", {})

    async def call(self, command: dict[str, Any]) -> None:
        method = command["method"]
        reply = {"id": command["id"], "method": method}
        try:
            await self.connected.wait()
            value = await getattr(self.client, METHODS.get(method, snake(method)))(*command["args"])
            emit(self.number, "returned", {**reply, "value": value})
        except Exception as error:
            emit(self.number, "returned", {**reply, "error": named(error)})

    async def do(self, command: dict[str, Any]) -> None:
        match command["do"]:
            case "send":
                self.input.put_nowait(command["message"])
            case "end":
                self.input.put_nowait(None)
            case "answer":
                self.answer(command)
            case "call":
                await self.call(command)
            case "abort":
                self.task.cancel()
            case other:
                raise RuntimeError(f"the driver cannot {other}")


async def once(message: dict[str, Any]) -> Any:
    yield message


def innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def main() -> None:
    loop = asyncio.get_running_loop()
    tasks = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        if command["do"] == "start":
            run = Run(command["run"], command["session"])
            RUNS[command["run"]] = run
            task = run.task = loop.create_task(run.play())
        elif command["do"] == "forget":
            run = RUNS.pop(command["run"], None)
            if run and run.task:
                run.task.cancel()
            continue
        elif run := RUNS.get(command["run"]):
            task = loop.create_task(run.do(command))
        else:
            continue
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main())
