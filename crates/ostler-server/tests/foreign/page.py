"""A page without a browser: a WebSocket client in another language does what a page does.

Prints `ok <number> <what>` for each check and ends with an error at the first that fails. The server and its people come
in the environment: OSTLER_SERVER (ws://…), OSTLER_OWNER and OSTLER_ANN (tokens), OSTLER_WORKSPACE (where agents work).
"""

import asyncio
import json
import os
import pathlib

from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

SERVER = os.environ["OSTLER_SERVER"]
OWNER = os.environ["OSTLER_OWNER"]
ANN = os.environ["OSTLER_ANN"]
WORKSPACE = pathlib.Path(os.environ["OSTLER_WORKSPACE"])
PATIENCE = 60
RACES = 10

passed = 0


def ok(what):
    global passed
    passed += 1
    print(f"ok {passed} {what}", flush=True)


def same(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


class Page:
    """One connection. Messages that arrive while another one is awaited are kept in order."""

    def __init__(self, connection):
        self.connection = connection
        self.kept = []

    @classmethod
    async def open(cls, token):
        headers = {"Authorization": f"Bearer {token}"}
        return cls(await connect(SERVER, additional_headers=headers, proxy=None))

    async def say(self, kind, **fields):
        await self.connection.send(json.dumps({"type": kind, **fields}))

    async def hear(self, kind, **fields):
        """The next message of a type with these fields."""

        def fits(message):
            return message["type"] == kind and all(
                message.get(name) == value for name, value in fields.items()
            )

        return await self.find(fits, f"{kind} {fields}")

    async def find(self, fits, what):
        for place, message in enumerate(self.kept):
            if fits(message):
                return self.kept.pop(place)
        while True:
            try:
                text = await asyncio.wait_for(self.connection.recv(), PATIENCE)
            except TimeoutError:
                raise AssertionError(f"no {what} came; {self.kept}") from None
            message = json.loads(text)
            if fits(message):
                return message
            self.kept.append(message)

    async def prompt(self, text):
        await self.say("prompt", text=text)
        return await self.hear("accepted")

    async def respond(self, asked, **decision):
        await self.say("permission_response", permissionId=asked["permissionId"], **decision)

    async def close(self):
        await self.connection.close()


async def status(page, run, state):
    """The status message with this state."""

    def says_so(message):
        changed = message.get("run", {})
        return message["type"] == "status" and (changed["id"], changed["state"]) == (run, state)

    return await page.find(says_so, f"status {state} of {run}")


async def nine_steps(approved):
    """Seed 001's permission flow, as far as a client can see each step."""
    word = "yes" if approved else "no"
    page = await Page.open(OWNER)
    await page.hear("hello")
    accepted = await page.prompt("make a file")
    begun = await page.hear("tool_start")
    same(begun["name"], "Bash")
    ok(f"step 1 ({word}): the agent wants to run a tool")
    asked = await page.hear("permission_request")
    called = await page.hear("tool_input")
    same((asked["toolUseId"], asked["toolName"], asked["input"]), (called["toolUseId"], "Bash", called["input"]))
    ok(f"step 2 ({word}): the request is for exactly this call, with its arguments")
    await status(page, accepted["runId"], "waiting")
    assert not (WORKSPACE / "made").exists(), "it ran before it was approved"
    ok(f"step 3 ({word}): the run waits and nothing has happened")
    same((asked["sessionId"], asked["runId"]), (accepted["sessionId"], accepted["runId"]))
    assert asked["permissionId"] and asked["input"]["command"] == "touch made"
    ok(f"step 4 ({word}): the request names its call, its run and its session")
    same(asked["summary"], "Bash: touch made")
    assert asked["digest"] and asked["rules"] and asked["asked"] > 0
    ok(f"step 5 ({word}): the request has everything a card shows")
    await page.respond(asked, approved=approved, digest=asked["digest"])
    ok(f"step 6 ({word}): the user answers")
    resolved = await page.hear("permission_resolved", permissionId=asked["permissionId"])
    same((resolved["approved"], resolved["by"], resolved["via"]), (approved, "owner", "websocket"))
    ok(f"step 7 ({word}): the request is decided, and names who decided")
    await status(page, accepted["runId"], "running")
    ok(f"step 8 ({word}): the run continues")
    result = await page.hear("tool_result", toolUseId=asked["toolUseId"])
    same(result["isError"], not approved)
    ended = await page.hear("result")
    same(ended["result"]["subtype"], "success")
    await status(page, accepted["runId"], "completed")
    same((WORKSPACE / "made").exists(), approved)
    ok(f"step 9 ({word}): the tool {'ran' if approved else 'did not run'}, and the model received the result")
    await page.close()


async def race(number):
    """Ann and the owner answer one request at the same moment, one with yes and one with no."""
    ann, owner = await Page.open(ANN), await Page.open(OWNER)
    await ann.hear("hello")
    await owner.hear("hello")
    accepted = await ann.prompt("race")
    asked = await ann.hear("permission_request", runId=accepted["runId"])
    seen = await owner.hear("permission_request", runId=accepted["runId"])
    same(seen["permissionId"], asked["permissionId"])
    answers = {"ann": (ann, number % 2 == 0), "owner": (owner, number % 2 == 1)}
    await asyncio.gather(*(page.respond(asked, approved=word) for page, word in answers.values()))
    decisions = [
        await page.hear("permission_resolved", permissionId=asked["permissionId"])
        for page in (ann, owner)
    ]
    same(decisions[0], decisions[1])
    winner = decisions[0]["by"]
    same(decisions[0]["approved"], answers[winner][1])
    (loser,) = [page for name, (page, _) in answers.items() if name != winner]
    error = (await loser.hear("error"))["error"]
    same(error["code"], "already_answered")
    assert winner in error["message"], f"{error} does not name {winner}"
    await status(ann, accepted["runId"], "completed")
    for page in (ann, owner):
        assert not [it for it in page.kept if it["type"] == "error"], page.kept
        await page.close()
    return decisions[0]["approved"]


async def races():
    outcomes = [await race(number) for number in range(RACES)]
    ran = (WORKSPACE / "races").read_text().count("ran") if any(outcomes) else 0
    same(ran, sum(outcomes))
    ok(f"{RACES} races: one answer counts, the other client receives who answered, and only a yes runs")


async def reconnect():
    """The client that sent the prompts disconnects. A later one finds the pending requests, answers them, and sees the end."""
    first = await Page.open(ANN)
    await first.hear("hello")
    runs = [await first.prompt("make a file"), await first.prompt("make a file")]
    asked = {(await first.hear("permission_request"))["permissionId"] for _ in runs}
    same(len(asked), 2)
    await first.close()
    ok("a client disconnects while two requests are pending")
    third = await Page.open(ANN)
    same((await third.hear("hello"))["pending"], 2)
    found = [await third.hear("permission_request") for _ in runs]
    same({it["permissionId"] for it in found}, asked)
    ok("a later client receives the pending requests")
    for request in found:
        await third.say("subscribe", sessionId=request["sessionId"])
        await third.respond(request, approved=True)
    for accepted in runs:
        await status(third, accepted["runId"], "completed")
    for accepted in runs:
        numbers = {it["seq"] for it in third.kept if it.get("sessionId") == accepted["sessionId"] and "seq" in it}
        assert 1 in numbers, "it received everything from the beginning"
    ok("it answers, sees everything from the beginning, and both runs complete")
    again = await Page.open(ANN)
    same((await again.hear("hello"))["pending"], 0)
    ok("nothing is pending any more")
    await third.close()
    await again.close()


async def question():
    page = await Page.open(ANN)
    await page.hear("hello")
    await page.prompt("ask me")
    asked = await page.hear("question_request")
    text = asked["questions"][0]["question"]
    await page.say("question_response", questionId=asked["questionId"], answers={text: "blue"})
    resolved = await page.hear("question_resolved")
    same((resolved["approved"], resolved["by"]), (True, "ann"))
    result = await page.hear("tool_result")
    assert "blue" in json.dumps(result["content"]), result
    ok("a question of the agent is answered")
    await page.close()


async def cancel():
    page = await Page.open(ANN)
    await page.hear("hello")
    accepted = await page.prompt("make a file")
    asked = await page.hear("permission_request", runId=accepted["runId"])
    await page.say("cancel", runId=accepted["runId"])
    resolved = await page.hear("permission_resolved", permissionId=asked["permissionId"])
    same((resolved["approved"], resolved["state"]), (False, "withdrawn"))
    await status(page, accepted["runId"], "cancelled")
    await page.respond(asked, approved=True)
    same((await page.hear("error"))["error"]["code"], "already_answered")
    ok("cancelling a run withdraws its request, and a late approval has no effect")
    await page.close()


async def refused():
    for headers, wanted in [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {OWNER}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": f"Bearer {OWNER}", "Origin": "null"}, 403),
    ]:
        try:
            async with connect(SERVER, additional_headers=headers, proxy=None):
                raise AssertionError(f"was accepted with {headers}")
        except InvalidStatus as refusal:
            same(refusal.response.status_code, wanted)
    ok("a missing token, a wrong one and pages of other origins are refused")


async def main():
    await nine_steps(approved=False)
    await nine_steps(approved=True)
    await races()
    await reconnect()
    await question()
    await cancel()
    await refused()
    print(f"all {passed} passed", flush=True)


asyncio.run(main())
