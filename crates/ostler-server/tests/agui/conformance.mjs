// An official AG-UI client examines the server: one numbered check and one line of output each.
//
// OSTLER_AGUI_PEERS names a folder with node_modules, OSTLER_AGUI_CLIENT is "new" (1.0) or "old" (before 1.0), and
// OSTLER_AGUI_SERVERS is JSON: the address of the scripted model, and those of servers that differ in their settings.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.OSTLER_AGUI_PEERS}/node_modules/x.js`);
const isOld = process.env.OSTLER_AGUI_CLIENT === "old";
const packageName = isOld ? "ag-ui-client-old" : "@ag-ui/client";
const { HttpAgent } = require(packageName);
const { EventSchema } = require("@ag-ui/core/schemas");
const servers = JSON.parse(process.env.OSTLER_AGUI_SERVERS);

let warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = (...words) => warnings.push(words.join(" "));

let fresh = 0;
const unique = (word) => `${word}-${process.env.OSTLER_AGUI_CLIENT}-${(fresh += 1)}`;
const paint = { name: "paint", description: "Paints", parameters: { type: "object", properties: {} } };
const carve = { ...paint, name: "carve" };
const confirm = { ...paint, name: "confirm" };

// --- a client

class Client {
  constructor(server = "plain", options = {}) {
    this.url = `${servers[server]}/agui`;
    this.headers = { Authorization: `Bearer ${options.caller ?? "ann"}`, ...options.headers };
    this.agent = new HttpAgent({
      url: this.url,
      headers: this.headers,
      threadId: options.threadId ?? unique("thread"),
      initialState: options.state ?? {},
      initialMessages: options.messages ?? [],
    });
    this.agent.fetch = async (url, init) => {
      this.sent = JSON.parse(init.body);
      this.response = await fetch(url, init);
      return this.response;
    };
  }

  says(content) {
    this.agent.addMessage({ id: unique("user"), role: "user", content });
    return this;
  }

  answers(toolCallId, content, more = {}) {
    this.agent.addMessage({ id: unique("tool"), role: "tool", toolCallId, content, ...more });
    return this;
  }

  // Runs the agent, and collects the events and errors that the client reports.
  async run(parameters = {}, watch = () => {}) {
    const run = { events: [], arrivals: [], error: null };
    warnings = [];
    const subscriber = {
      onEvent: ({ event }) => {
        run.events.push(event);
        run.arrivals.push(performance.now());
        watch(event);
      },
    };
    try {
      await this.agent.runAgent({ runId: unique("run"), ...parameters }, subscriber);
    } catch (error) {
      run.error = error;
    }
    run.warnings = warnings;
    return Object.assign(run, summary(run.events));
  }

  // A run that must end without any error.
  async ran(parameters, watch) {
    const run = await this.run(parameters, watch);
    assert.equal(run.error, null, `${run.error?.stack}\n${story(run)}`);
    assert.deepEqual(run.warnings, [], story(run));
    assert.equal(run.ends.length, 1, story(run));
    return run;
  }
}

const story = (run) => run.events.map((event) => JSON.stringify(event)).join("\n");

function summary(events) {
  const of = (type) => events.filter((event) => event.type === type);
  const calls = of("TOOL_CALL_START").map((start) => ({
    id: start.toolCallId,
    name: start.toolCallName,
    args: of("TOOL_CALL_ARGS").filter((it) => it.toolCallId === start.toolCallId).map((it) => it.delta).join(""),
    ended: of("TOOL_CALL_END").some((it) => it.toolCallId === start.toolCallId),
  }));
  const ends = events.filter((event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR");
  return {
    of,
    calls,
    ends,
    end: ends.at(-1),
    outcome: ends.at(-1)?.outcome?.type,
    pending: ends.at(-1)?.outcome?.pendingToolCallIds,
    interrupts: ends.at(-1)?.outcome?.interrupts ?? [],
    results: of("TOOL_CALL_RESULT"),
    text: of("TEXT_MESSAGE_CONTENT").map((it) => it.delta).join(""),
    types: events.map((event) => event.type),
  };
}

// A request without a client.
const raw = (body, { server = "plain", caller = "ann", ...init } = {}) =>
  fetch(`${servers[server]}/agui`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      ...(caller ? { authorization: `Bearer ${caller}` } : {}),
      ...init.headers,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(init.signal ? { signal: init.signal } : {}),
  });

const input = (more = {}) => ({
  threadId: unique("thread"),
  runId: unique("run"),
  messages: [{ id: unique("user"), role: "user", content: "hello" }],
  ...(isOld ? {} : { protocolVersion: "1.0" }),
  ...more,
});

const frames = (text) =>
  text
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: "))
    .map((frame) => JSON.parse(frame.slice(6)));

const model = async (path, body) => {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${servers.model}/__scripted/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert(response.ok, await response.text());
};
const requests = async () => (await fetch(`${servers.model}/__scripted/requests`)).json();
const lastRequest = async () => (await requests()).at(-1).body;
const stop = (client, server = "plain") =>
  fetch(`${servers[server]}/agui/stop`, {
    method: "POST",
    headers: { "content-type": "application/json", ...client.headers },
    body: JSON.stringify({ threadId: client.agent.threadId }),
  });
const resume = (run, payload, status = "resolved") =>
  run.interrupts.map((it) => ({ interruptId: it.id, status, ...(payload === undefined ? {} : { payload }) }));
// Which of the client's tools a run waits for. Old clients do not receive this.
const waits = (run, ids) => (isOld ? assert.equal(run.pending, undefined) : assert.deepEqual(run.pending, ids));

// Waits for something that the client is about to see.
const until = async (seen) => {
  while (!seen()) await new Promise((resolve) => setTimeout(resolve, 5));
};

// --- the checks

const checks = {
  "1 one JSON object per frame, LF only, comments tolerated": async () => {
    const response = await raw(input({ messages: [{ id: "u", role: "user", content: "nap" }] }), { server: "lively" });
    assert.match(response.headers.get("content-type"), /^text\/event-stream/);
    const text = await response.text();
    assert(!text.includes("\r") && /^: ?keep-alive$/m.test(text) && !text.includes("[DONE]"), text);
    assert.equal(frames(text).at(-1).type, "RUN_FINISHED");
  },
  "2 the first event comes before the model answers": async () => {
    const client = new Client();
    const seen = [];
    const running = client.says("hold-a").run({}, (event) => seen.push(event.type));
    await model("reached", { gate: "hold-a" });
    await until(() => seen.includes("RUN_STARTED"));
    await model("release", { gate: "hold-a" });
    assert.equal((await running).text, "held");
  },
  "3 malformed input is 4xx without a stream": async () => {
    for (const body of ["{", { runId: "r", messages: [] }, { threadId: "t", runId: "r" }, input({ messages: 7 }), input({ tools: {} })]) {
      const response = await raw(body);
      assert.equal(response.status, 400);
      assert.match(response.headers.get("content-type"), /json/);
    }
    const bad = await new Client("plain", { threadId: "t" }).says("hello").run({ tools: [{ name: "x" }] });
    if (isOld) assert(bad.error, "the client refuses it, or the server does");
  },
  "4 unknown fields are accepted": async () => {
    const events = frames(await (await raw(input({ brandNew: { a: 1 } }))).text());
    assert.equal(events.at(-1).type, "RUN_FINISHED");
  },
  "5 optional fields may be absent or null": async () => {
    for (const more of [{}, { forwardedProps: null }, { state: null, tools: null, context: null }]) {
      assert.equal(frames(await (await raw(input(more))).text()).at(-1).type, "RUN_FINISHED");
    }
  },
  "6 refused before the stream without a token": async () => {
    assert.equal((await raw(input(), { caller: null })).status, 401);
    const client = new Client();
    client.agent.headers = {};
    const run = await client.says("hello").run();
    assert(run.error);
    assert.equal(run.error.status ?? 401, 401);
  },
  "7 a page of an allowed origin may send requests": async () => {
    const headers = { origin: "https://app.example", "access-control-request-method": "POST", "access-control-request-headers": "content-type,authorization" };
    const response = await fetch(`${servers.plain}/agui`, { method: "OPTIONS", headers });
    assert(response.ok);
    assert.equal(response.headers.get("access-control-allow-origin"), "https://app.example");
  },
  "8 a large picture is accepted, or refused with 413": async () => {
    const picture = { type: "image", source: { type: "data", value: "iVBORw0KGgo" + "A".repeat(5_000_001), mimeType: "image/png" } };
    const messages = [{ id: "u", role: "user", content: [{ type: "text", text: "hello" }, picture] }];
    assert.equal(frames(await (await raw(input({ messages }))).text()).at(-1).type, "RUN_FINISHED");
    const long = [{ id: "u", role: "user", content: "x".repeat(2_000) }];
    assert.equal((await raw(input({ messages: long }), { server: "small" })).status, 413);
  },
  "9 keep-alive comments while a tool sends nothing": async () => {
    const body = input({ messages: [{ id: "u", role: "user", content: "nap" }] });
    assert.match(await (await raw(body, { server: "lively" })).text(), /^: ?keep-alive$/m);
  },
  "10 ids may be any text": async () => {
    const client = new Client("plain", { threadId: `a thread 🧵 ${unique("x")}` });
    const run = await client.says("hello").ran({ runId: "run one ▶" });
    assert.equal(run.end.runId, "run one ▶");
  },
  "11 events arrive one by one": async () => {
    const seen = [];
    const running = new Client().says("halves-a").run({}, (event) => seen.push(event.type));
    await model("reached", { gate: "halves-a" });
    // The first half arrives before the model sends the second.
    await until(() => seen.includes("TEXT_MESSAGE_CONTENT"));
    assert(!seen.includes("RUN_FINISHED"));
    await model("release", { gate: "halves-a" });
    assert.equal((await running).text, "first second");
  },
  "12 a run has exactly one end event, however it ends": async () => {
    for (const prompt of ["hello", "fail", "failing", "paint", "write"]) {
      const run = await new Client().says(prompt).run({ tools: [paint] });
      assert.equal(run.ends.length, 1, story(run));
      assert.equal(run.types.at(-1), run.end.type);
    }
    const late = await new Client("hasty").says("stall").run();
    assert.equal(late.end.code, "timeout");
    const ending = new Client("ending").says("stall").run();
    await model("reached", { gate: "stall", arrivals: 2 });
    await fetch(`${servers.control}/shutdown`, { method: "POST" });
    assert.equal((await ending).end.code, "shutdown");
  },
  "13 ids are echoed": async () => {
    const client = new Client();
    const run = await client.says("hello").ran({ runId: unique("mine") });
    for (const event of [run.events[0], run.end]) {
      assert.equal(event.threadId, client.agent.threadId);
      assert.equal(event.runId, client.sent.runId);
    }
  },
  "14 versions": async () => {
    const run = await new Client().says("hello").ran();
    assert.equal(run.events[0].protocolVersion, "1.0");
    for (const [protocolVersion, status] of [["1.7", 200], ["abc", 200], ["2.0", 400]]) {
      const response = await raw(input({ protocolVersion }));
      assert.equal(response.status, status);
      await response.text();
    }
  },
  "15 no warning in a whole run": async () => {
    const client = new Client("plain", { state: { a: 1 } });
    for (const prompt of ["hello", "think", "backend", "agents", "todo", "state"]) {
      await client.says(prompt).ran();
    }
  },
  "16 every event passes the validators strictly": async () => {
    for (const content of ["hello", "think", "backend", "agents", "todo", "failing", "picture"]) {
      const events = frames(await (await raw({ ...input(), protocolVersion: "1.0", messages: [{ id: "u", role: "user", content }] })).text());
      for (const event of events) strict(EventSchema, event);
    }
  },
  "17 a model that fails": async () => {
    const client = new Client();
    const run = await client.says("fail").run();
    assert.equal(run.end.type, "RUN_ERROR");
    assert(run.end.code && run.end.message.includes("no luck"), story(run));
    assert.equal(run.text, "");
    const broken = await new Client().says("breaks off").run();
    assert.equal(broken.end.type, "RUN_ERROR", story(broken));
    assert(broken.text.startsWith("so far"), story(broken));
  },
  "18 a user stops a run": async () => {
    const client = new Client();
    const run = await client.says("stall").run({}, (event) => {
      if (event.type === "TEXT_MESSAGE_CONTENT") stop(client);
    });
    assert.equal(run.error, null, story(run));
    if (isOld) assert.equal(run.end.code, "cancelled");
    else assert.equal(run.outcome, "cancelled");
    assert(run.of("TEXT_MESSAGE_END").length === 1, story(run));
    assert.equal((await client.says("hello again").ran()).outcome, "success");
  },
  "19 a client disconnects during a run": async () => {
    const abort = new AbortController();
    const body = input({ messages: [{ id: "u1", role: "user", content: "halves-b" }] });
    const response = await raw(body, { signal: abort.signal });
    await model("reached", { gate: "halves-b" });
    abort.abort();
    await response.text().catch(() => {});
    await model("release", { gate: "halves-b" });
    const next = { ...body, runId: unique("run"), messages: [...body.messages, { id: "a", role: "assistant", content: "first" }, { id: "u2", role: "user", content: "hello" }] };
    const events = frames(await (await raw(next)).text());
    assert.equal(events.at(-1).outcome.type, "success");
    assert(JSON.stringify((await lastRequest()).messages).includes("first second"), "the run finished meanwhile");
  },
  "20 text arrives complete": async () => {
    const client = new Client();
    const run = await client.says("hello").ran();
    assert.equal(run.text, "Hello wörld 👩‍👩‍👧‍👦!");
    assert.equal(client.agent.messages.at(-1).content, run.text);
  },
  "21 a turn with only calls has no empty message": async () => {
    const run = await new Client().says("backend").ran();
    assert(run.of("TEXT_MESSAGE_START").every((start) => run.of("TEXT_MESSAGE_CONTENT").some((it) => it.messageId === start.messageId)));
    assert.equal(run.of("TEXT_MESSAGE_START").length, 1);
  },
  "22 thoughts are closed, and have their own ids and signatures": async () => {
    const client = new Client();
    const run = await client.says("think").ran();
    assert.equal(run.of("REASONING_START").length, run.of("REASONING_END").length);
    assert.equal(run.of("REASONING_MESSAGE_START").length, run.of("REASONING_MESSAGE_END").length);
    const thought = client.agent.messages.find((message) => message.role === "reasoning");
    assert.equal(thought.content, "Hm");
    assert.equal(thought.encryptedValue, "c2lnbmVk");
    assert(!run.of("TEXT_MESSAGE_START").some((it) => it.messageId === thought.id));
  },
  "23 a thought may be sent back": async () => {
    const client = new Client();
    await client.says("think").ran();
    assert.equal((await client.says("hello").ran()).outcome, "success");
    assert(client.sent.messages.some((message) => message.role === "reasoning"));
  },
  "24 two thoughts keep their signatures": async () => {
    const client = new Client();
    await client.says("think twice").ran();
    const thoughts = client.agent.messages.filter((message) => message.role === "reasoning");
    assert.deepEqual(thoughts.map((it) => [it.content, it.encryptedValue]), [["One", "b25l"], ["Two", "dHdv"]]);
  },
  "25 ids of messages are unique in a thread": async () => {
    const client = new Client();
    for (const prompt of ["hello", "backend", "think", "hello"]) await client.says(prompt).ran();
    const ids = client.agent.messages.map((message) => message.id);
    assert.equal(new Set(ids).size, ids.length);
  },
  "26 a call of a server tool": async () => {
    const run = await new Client().says("backend").ran();
    const [call] = run.calls;
    assert(call.ended && JSON.parse(call.args).pattern === "*.none");
    const at = (type) => run.types.indexOf(type);
    assert(at("TOOL_CALL_START") < at("TOOL_CALL_ARGS") && at("TOOL_CALL_END") < at("TOOL_CALL_RESULT"));
    assert.equal(run.results[0].toolCallId, call.id);
  },
  "27 two calls of server tools at once": async () => {
    const run = await new Client().says("parallel").ran();
    assert.deepEqual(run.calls.map((call) => JSON.parse(call.args).pattern), ["one.none", "two.none"]);
    assert.deepEqual(run.results.map((it) => it.toolCallId).sort(), run.calls.map((it) => it.id).sort());
  },
  "28 a call without arguments": async () => {
    const run = await new Client().says("paint nothing").ran({ tools: [paint] });
    assert.equal(run.calls[0].args, "{}");
  },
  "29 a tool that fails": async () => {
    const run = await new Client().says("failing").ran();
    assert.equal(run.results.length, 1);
    assert(run.results[0].metadata?.isError && run.text.startsWith("Result:"), story(run));
  },
  "30 a call of a client tool": async () => {
    const run = await new Client().says("paint").ran({ tools: [paint] });
    assert.equal(run.calls[0].name, "paint");
    assert.equal(run.results.length, 0);
    assert.equal(run.outcome, "success");
    waits(run, [run.calls[0].id]);
  },
  "31 the client answers the call in the next run": async () => {
    const client = new Client();
    const first = await client.says("paint").ran({ tools: [paint] });
    const second = await client.answers(first.calls[0].id, "crimson").ran({ tools: [paint] });
    assert.equal(second.text, "Result: crimson");
    assert.equal(second.calls.length + second.results.length, 0);
  },
  "32 two calls of client tools, answered together": async () => {
    const client = new Client();
    const first = await client.says("paint two").ran({ tools: [paint] });
    waits(first, first.calls.map((call) => call.id));
    for (const [index, call] of first.calls.entries()) client.answers(call.id, `colour ${index}`);
    assert.equal((await client.ran({ tools: [paint] })).outcome, "success");
    const sent = JSON.stringify((await lastRequest()).messages);
    assert(sent.includes("colour 0") && sent.includes("colour 1"));
  },
  "33 a call of a client tool and one of a server tool": async () => {
    const client = new Client();
    const first = await client.says("paint mixed").ran({ tools: [paint] });
    assert.deepEqual(first.results.map((it) => it.toolCallId), [first.calls[1].id]);
    waits(first, [first.calls[0].id]);
    assert.equal((await client.answers(first.calls[0].id, "red").ran({ tools: [paint] })).outcome, "success");
  },
  "34 an answer that is an error, or a picture": async () => {
    const failed = new Client();
    const first = await failed.says("paint").ran({ tools: [paint] });
    assert.match((await failed.answers(first.calls[0].id, "", { error: "no paint" }).ran({ tools: [paint] })).text, /no paint/);
    if (isOld) return;
    const shown = new Client();
    const second = await shown.says("paint").ran({ tools: [paint] });
    // One pixel: the Messages API refuses what is not an image.
    const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const picture = [{ type: "image", source: { type: "data", value: pixel, mimeType: "image/png" } }];
    assert.equal((await shown.answers(second.calls[0].id, picture).ran({ tools: [paint] })).outcome, "success");
    assert(JSON.stringify((await lastRequest()).messages).includes(pixel));
  },
  "35 an answer to a call that does not exist": async () => {
    const client = new Client();
    await client.says("hello").ran();
    const before = (await requests()).length;
    const run = await client.answers("never-made", "made up").ran();
    assert.deepEqual(run.types, ["RUN_STARTED", "RUN_FINISHED"]);
    assert.equal((await requests()).length, before);
  },
  "36 a user sends a prompt instead of the answer": async () => {
    const client = new Client();
    await client.says("paint").ran({ tools: [paint] });
    const run = await client.says("hello").ran({ tools: [paint] });
    assert.equal(run.text, "Hello wörld 👩‍👩‍👧‍👦!");
  },
  "37 other tools in another run": async () => {
    const client = new Client();
    await client.says("hello").ran({ tools: [paint] });
    await client.says("hello").ran({ tools: [carve] });
    const names = (await lastRequest()).tools.map((tool) => tool.name);
    assert(names.includes("mcp__ag_ui__carve") && !names.includes("mcp__ag_ui__paint"));
  },
  "38 an answer while the run still streams": async () => {
    const body = input({ tools: [paint], messages: [{ id: "u", role: "user", content: "paint" }] });
    const response = await raw(body);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    let second;
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
      const ended = frames(text.slice(0, text.lastIndexOf("\n\n") + 2)).find((event) => event.type === "TOOL_CALL_END");
      if (ended && !second) {
        const answer = { id: "t", role: "tool", toolCallId: ended.toolCallId, content: "at once" };
        second = raw({ ...body, runId: unique("run"), messages: [...body.messages, answer] });
      }
    }
    const events = summary(frames(await (await second).text()));
    assert.equal(events.text, "Result: at once");
  },
  "39 snapshot and deltas add up to the state": async () => {
    const client = new Client("plain", { state: { old: 1, kept: true } });
    await client.says("state").ran();
    assert.deepEqual(client.agent.state, { kept: true, steps: [1, 2] });
  },
  "40 the next run starts from the client's state": async () => {
    const client = new Client("plain", { state: { old: 1 } });
    await client.says("state").ran();
    client.agent.state = { mine: "edited" };
    await client.says("hello").ran();
    assert(JSON.stringify((await lastRequest()).system).includes('{\\"mine\\":\\"edited\\"}'));
  },
  "41 the client cannot change the server's keys": async () => {
    const client = new Client("keys", { state: { plan: "hacked", mine: 1 } });
    await client.says("hello").ran();
    assert.deepEqual(client.agent.state, { mine: 1 });
  },
  "42 any value is a state": async () => {
    for (const state of [null, [1, 2], 7]) {
      const events = frames(await (await raw(input({ state }))).text());
      assert.equal(events.at(-1).type, "RUN_FINISHED");
      assert(!events.some((event) => event.type === "STATE_SNAPSHOT"));
    }
  },
  "43 a resent history repeats nothing": async () => {
    const client = new Client();
    await client.says("hello").ran();
    const before = (await requests()).length;
    await client.says("hello").ran();
    assert.equal((await requests()).length, before + 1);
    assert.equal((await lastRequest()).messages.length, 3);
  },
  "44 a run without new messages is empty": async () => {
    const client = new Client();
    await client.says("hello").ran();
    assert.deepEqual((await client.ran()).types, ["RUN_STARTED", "RUN_FINISHED"]);
  },
  "45 a regenerated answer": async () => {
    const client = new Client();
    await client.says("hello").ran();
    await client.says("hello once more").ran();
    client.agent.setMessages(client.agent.messages.slice(0, 3));
    const run = await client.ran();
    assert.equal(run.text, "Hello wörld 👩‍👩‍👧‍👦!");
    assert.equal((await lastRequest()).messages.length, 3);
  },
  "46 a history of an unknown thread": async () => {
    const messages = [
      { id: "u1", role: "user", content: "my name is Ada" },
      { id: "a1", role: "assistant", content: "Noted" },
      { id: "u2", role: "user", content: "hello" },
    ];
    await new Client("plain", { messages }).ran();
    assert(JSON.stringify((await lastRequest()).messages).includes("my name is Ada"));
  },
  "47 pictures are accepted, unusable content is left out": async () => {
    const data = (mimeType) => ({ type: "data", value: "iVBORw0KGgo=", mimeType });
    const content = [{ type: "text", text: "hello" }, { type: "image", source: data("image/png") }, { type: "audio", source: data("audio/wav") }];
    await new Client().says(content).ran();
    const kinds = (await lastRequest()).messages[0].content.map((block) => block.type);
    assert.deepEqual(kinds, ["text", "image"]);
  },
  "48 an approval is an interrupt": async () => {
    const run = await new Client().says("write").ran();
    assert.equal(run.outcome, "interrupt");
    assert.equal(run.interrupts[0].toolCallId, run.calls[0].id);
    assert(run.calls[0].ended);
    assert.equal(new Set(run.interrupts.map((it) => it.id)).size, run.interrupts.length);
  },
  "49 answers to an interrupt": async () => {
    const edited = { file_path: `${unique("file")}.txt`, content: "edited" };
    const cases = [
      [{ approved: true }, "resolved", false],
      [{ approved: false, message: "not now" }, "resolved", true],
      [{ approved: true, editedArgs: edited }, "resolved", false],
      [undefined, "cancelled", true],
    ];
    for (const [payload, status, denied] of cases) {
      const client = new Client();
      const first = await client.says("write").ran();
      const second = await client.ran({ resume: resume(first, payload, status) });
      assert.equal(second.calls.length, 0);
      assert.equal(second.results[0].toolCallId, first.calls[0].id);
      assert.equal(Boolean(second.results[0].metadata?.isError), denied, story(second));
      if (payload?.editedArgs) assert(second.text.includes(edited.file_path), second.text);
      if (payload?.message) assert(second.text.includes("not now"), second.text);
    }
  },
  "50 an answer to another interrupt, or no answer": async () => {
    const client = new Client();
    const first = await client.says("write").ran();
    const base = { threadId: client.agent.threadId, messages: client.agent.messages };
    for (const entries of [undefined, [], [{ interruptId: "unknown", status: "resolved", payload: { approved: true } }]]) {
      const again = summary(frames(await (await raw({ ...input(), ...base, resume: entries })).text()));
      assert.deepEqual(again.interrupts.map((it) => it.id), first.interrupts.map((it) => it.id));
    }
    const extra = [...resume(first, { approved: true }), { interruptId: "unknown", status: "resolved", payload: { approved: true } }];
    const done = summary(frames(await (await raw({ ...input(), ...base, resume: extra })).text()));
    assert.equal(done.outcome, "success");
  },
  "51 approvals through a client tool": async () => {
    const client = new Client("confirm");
    const first = await client.says("write").ran({ tools: [confirm] });
    const asked = first.calls.find((call) => call.name === "confirm");
    assert.equal(JSON.parse(asked.args).toolCallId, first.calls[0].id);
    const second = await client.answers(asked.id, JSON.stringify({ approved: true })).ran({ tools: [confirm] });
    assert.equal(second.results[0].toolCallId, first.calls[0].id);
    assert.equal(second.outcome, "success");
  },
  "52 two callers, one thread id": async () => {
    const threadId = unique("shared");
    await new Client("plain", { threadId }).says("hello, the secret is 42").ran();
    await new Client("plain", { threadId, caller: "bob" }).says("hello").ran();
    assert(!JSON.stringify(await lastRequest()).includes("the secret is 42"));
  },
  "53 two runs on one thread": async () => {
    const threadId = unique("busy");
    const first = new Client("plain", { threadId }).says("hold-b").run();
    await model("reached", { gate: "hold-b" });
    const second = new Client("plain", { threadId, messages: [] }).says("hello").run();
    await model("release", { gate: "hold-b" });
    const runs = await Promise.all([first, second]);
    assert.deepEqual(runs.map((run) => run.text), ["held", "Hello wörld 👩‍👩‍👧‍👦!"]);
    const refusing = new Client("refuse", { threadId });
    const held = refusing.says("hold-c").run();
    await model("reached", { gate: "hold-c" });
    assert.equal((await raw(input({ threadId }), { server: "refuse" })).status, 409);
    await model("release", { gate: "hold-c" });
    assert.equal((await held).text, "held");
  },
  "54 many threads at once": async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, (_, number) => raw(input({ messages: [{ id: "u", role: "user", content: `echo ${number}!` }] })).then((response) => response.text())));
    runs.forEach((text, number) => assert.equal(summary(frames(text)).text, `You said echo ${number}!`));
    const one = new Client("single").says("hold-d").run();
    await model("reached", { gate: "hold-d" });
    assert.equal((await raw(input(), { server: "single" })).status, 503);
    await model("release", { gate: "hold-d" });
    assert.equal((await one).text, "held");
  },
  "55 the engine of an idle thread ends, that of a waiting one stays": async () => {
    const resting = new Client("restless");
    await resting.says("hello").ran();
    const waiting = new Client("restless");
    const first = await waiting.says("paint").ran({ tools: [paint] });
    const threads = await (await fetch(`${servers.control}/sweep`, { method: "POST" })).json();
    assert.equal(threads, 1);
    assert.equal((await waiting.answers(first.calls[0].id, "red").ran({ tools: [paint] })).text, "Result: red");
  },
  "56 a run over the time limit is ended": async () => {
    const client = new Client("hasty");
    assert.equal((await client.says("stall").run()).end.code, "timeout");
    assert.equal((await client.says("hello").ran()).outcome, "success");
  },
  "57 subagents": async () => {
    const run = await new Client().says("agents").ran();
    const started = run.of("SUBAGENT_STARTED").map((it) => it.subagentRunId);
    assert.equal(started.length, 2, story(run));
    assert.deepEqual(run.of("SUBAGENT_FINISHED").map((it) => it.subagentRunId).sort(), [...started].sort());
    const openers = new Map(run.of("TEXT_MESSAGE_START").map((it) => [it.messageId, it.subagentRunId]));
    for (const end of run.of("TEXT_MESSAGE_END")) assert.equal(end.subagentRunId, openers.get(end.messageId));
    for (const id of started) assert([...openers.values()].includes(id), story(run));
    assert.equal(run.types.at(-1), "RUN_FINISHED");
  },
  "58 the usage of subagents is counted once": async () => {
    const run = await new Client().says("agents").ran();
    assert.equal(run.end.usage.length, 1);
    assert.equal(run.end.usage[0].outputTokens, 10 + 1000 + 1000 + 100);
  },
  "59 an old client can read every event": async () => {
    const body = { ...input({ tools: [paint] }), messages: [{ id: "u", role: "user", content: "paint" }] };
    delete body.protocolVersion;
    assert.equal(summary(frames(await (await raw(body)).text())).pending, undefined);
    const picture = { ...body, threadId: unique("t"), messages: [{ id: "u", role: "user", content: "picture" }] };
    const results = summary(frames(await (await raw(picture)).text())).results;
    assert.equal(typeof results[0].content, "string");
  },
  "60 the loop of CopilotKit runs a page's tool once and gets the answer": async () => {
    const { CopilotKitCore } = require("@copilotkit/core");
    const { HttpAgent } = require("ag-ui-client-old");
    const headers = { Authorization: "Bearer ann" };
    const agent = new HttpAgent({ url: `${servers.plain}/agui`, headers, threadId: unique("thread") });
    let ran = 0;
    const handler = async () => ((ran += 1), "red");
    const tools = [{ name: "paint", description: "Paints", handler }];
    const core = new CopilotKitCore({ agents__unsafe_dev_only: { painter: agent }, tools, headers });
    agent.addMessage({ id: unique("user"), role: "user", content: "paint" });
    await core.runAgent({ agent });
    assert.equal(ran, 1);
    assert.deepEqual(agent.messages.map((it) => it.role), ["user", "assistant", "tool", "assistant"]);
    assert.equal(agent.messages.at(-1).content, "Result: red");
  },
};

// Refuses undeclared fields at every depth that the schema describes.
function strict(schema, value) {
  const options = schema.options;
  const option = options.find((it) => it.shape.type.value === value.type || it.shape.type.safeParse(value.type).success);
  option.parse(value);
  for (const key of Object.keys(value)) assert(key in option.shape, `${value.type} has ${key}`);
}

// Some checks count arrivals at gates, so they run in order. An argument names a single check.
const only = process.argv[2];
let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  if (only && !name.startsWith(`${only} `)) continue;
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("the check takes too long")), 60_000)));
  try {
    await Promise.race([check(), late]);
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${(error.stack ?? String(error)).slice(0, 3000).replaceAll("\n", "\n    ")}`);
  }
  clearTimeout(timer);
}
process.exit(failed ? 1 : 0);
