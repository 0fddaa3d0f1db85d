// From the same events, the official client and this page build the same conversation to send back.

import { HttpAgent } from "@ag-ui/client";
import type { AGUIEvent } from "@ag-ui/core";
import { expect, test } from "vitest";
import { toMessages } from "../src/agui/items";
import { Thread } from "../src/agui/thread";

const run = { threadId: "t", runId: "r" };

const STREAMS: Record<string, unknown[]> = {
  "text and a call with its result": [
    { type: "TEXT_MESSAGE_START", messageId: "a", role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Look" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "ing 👩‍🚀" },
    { type: "TEXT_MESSAGE_END", messageId: "a" },
    { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "Read", parentMessageId: "a" },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: '{"file_path":' },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: '"x"}' },
    { type: "TOOL_CALL_END", toolCallId: "c" },
    { type: "TOOL_CALL_RESULT", messageId: "c-result", toolCallId: "c", content: "none", role: "tool" },
  ],
  "parallel calls without text": [
    { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "Glob", parentMessageId: "m" },
    { type: "TOOL_CALL_ARGS", toolCallId: "c", delta: "{}" },
    { type: "TOOL_CALL_END", toolCallId: "c" },
    { type: "TOOL_CALL_START", toolCallId: "d", toolCallName: "Grep", parentMessageId: "m" },
    { type: "TOOL_CALL_ARGS", toolCallId: "d", delta: "{}" },
    { type: "TOOL_CALL_END", toolCallId: "d" },
  ],
  "a snapshot and more behind it": [
    { type: "MESSAGES_SNAPSHOT", messages: [{ id: "u", role: "user", content: "Hi" }, { id: "x", role: "assistant", content: "Ho" }] },
    { type: "REASONING_START", messageId: "q" },
    { type: "REASONING_MESSAGE_START", messageId: "q", role: "reasoning" },
    { type: "REASONING_MESSAGE_CONTENT", messageId: "q", delta: "Hm" },
    { type: "REASONING_MESSAGE_END", messageId: "q" },
    { type: "REASONING_END", messageId: "q" },
    { type: "TEXT_MESSAGE_START", messageId: "a", role: "assistant" },
    { type: "TEXT_MESSAGE_CONTENT", messageId: "a", delta: "Well" },
    { type: "TEXT_MESSAGE_END", messageId: "a" },
  ],
};

test.each(Object.keys(STREAMS))("the official client receives the same: %s", async (name) => {
  const events = [{ type: "RUN_STARTED", ...run }, ...STREAMS[name]!, { type: "RUN_FINISHED", ...run, outcome: { type: "success" } }];
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
  const agent = new HttpAgent({ url: "http://127.0.0.1/agui", threadId: "t", fetch } as ConstructorParameters<typeof HttpAgent>[0]);
  await agent.runAgent({ runId: "r" });
  const thread = new Thread();
  for (const event of events) thread.apply(event as AGUIEvent, 0);
  expect(toMessages(thread.items)).toEqual(agent.messages);
});
