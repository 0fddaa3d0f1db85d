// The official client and this page receive the same from our server: the conversations that both would send back are
// compared.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { HttpAgent } from "@ag-ui/client";
import { runnerImport } from "vite";
import { lastSaid } from "../model.mjs";

const { module: { Thread } } = await runnerImport("./src/agui/thread.ts");
const { module: { toMessages } } = await runnerImport("./src/agui/items.ts");
const { module: { frames } } = await runnerImport("./src/agui/sse.ts");

/** The official client on a thread, and the page's thread from exactly the same bytes. */
class Pair {
  constructor(server, threadId, path = "/agui") {
    this.thread = new Thread();
    const listening = [];
    const fetch = async (url, init) => {
      const response = await globalThis.fetch(url, init);
      const [one, other] = response.body.tee();
      listening.push(this.hear(other));
      return new Response(one, { status: response.status, headers: response.headers });
    };
    this.listening = listening;
    this.agent = new HttpAgent({ url: server.url + path, threadId, headers: { authorization: `Bearer ${server.token}` }, fetch });
  }

  async hear(body) {
    let rest = "";
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      const found = frames(rest + text);
      rest = found.rest;
      for (const data of found.data) this.thread.apply(JSON.parse(data), 0);
    }
  }

  async say(text) {
    const id = crypto.randomUUID();
    this.agent.addMessage({ id, role: "user", content: text });
    this.thread.say({ id, kind: "user", text, attached: [] });
    return this.run();
  }

  async run(parameters = {}) {
    await this.agent.runAgent(parameters);
    await Promise.all(this.listening);
    // Activities are not part of the conversation, and neither client sends them back.
    const said = this.agent.messages.filter((message) => message.role !== "activity");
    assert.deepEqual(comparable(toMessages(this.thread.items)), comparable(said));
    return said;
  }
}

/** Without missing fields, which are not sent; and with each result after its call, whenever it arrived. */
function comparable(messages) {
  const sent = JSON.parse(JSON.stringify(messages));
  const results = new Map(sent.filter((it) => it.role === "tool").map((it) => [it.toolCallId, it]));
  const behind = (message) => (message.toolCalls ?? []).map((call) => results.get(call.id)).filter(Boolean);
  return sent.filter((it) => it.role !== "tool").flatMap((message) => [message, ...behind(message)]);
}

const session = async (server) => (await server.call("POST", "/api/sessions", { title: "Contract" })).id;

export default {
  async "the official client receives what the page receives: a call, an approval, a question, a subagent"({ server }) {
    const id = await session(server);
    const pair = new Pair(server, id);
    await pair.say("list the files");
    await pair.say('write "x" to a.txt');
    assert.equal(pair.thread.phase, "waiting");
    const [asked] = pair.thread.interrupts;
    await pair.run({ resume: [{ interruptId: asked.id, status: "resolved", payload: { approved: true } }] });
    assert.equal(pair.thread.phase, "idle");
    assert.equal(readFileSync(join(server.workspace, "a.txt"), "utf8").trim(), "x");
    await pair.say("ask me which colour I like: red, green or blue");
    const [question] = pair.thread.interrupts;
    await pair.run({ resume: [{ interruptId: question.id, status: "resolved", payload: "green" }] });
    const said = await pair.say("ask a subagent to read README.md");
    assert.ok(said.some((message) => message.subagentRunId), "the subagent's work was sent");
    assert.ok(said.length > 12, `${said.length} messages`);
    const todos = [{ content: "Look", status: "in_progress", activeForm: "Looking" }];
    await pair.say(`use the tool TodoWrite with ${JSON.stringify({ todos })}`);

    // A client that connects later receives the same.
    const later = new Pair(server, id, "/agui/connect");
    const received = await later.run();
    const texts = (messages) => comparable(messages).filter((it) => it.role === "user" || it.role === "tool").map((it) => [it.role, it.content]);
    assert.deepEqual(texts(received), texts(pair.agent.messages));
  },

  "the official client receives what the page receives: reasoning and many concurrent calls": {
    script: (asked) => {
      if (lastSaid(asked).startsWith("result:")) return { thinking: "So that is it.", text: "There is one file." };
      const calls = [{ name: "Glob", input: { pattern: "*" } }, { name: "Glob", input: { pattern: "*.md" } }];
      return { thinking: "I look around.", text: "I look twice.", calls };
    },
    async run({ server }) {
      const id = await session(server);
      const pair = new Pair(server, id);
      const said = await pair.say("look");
      assert.deepEqual(said.map((it) => it.role), ["user", "reasoning", "assistant", "tool", "tool", "reasoning", "assistant"]);
      await new Pair(server, id, "/agui/connect").run();
    },
  },
};
