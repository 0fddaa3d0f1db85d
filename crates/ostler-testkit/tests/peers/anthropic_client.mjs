// Sends requests to the scripted API with the vendor's own client library and prints the library's results as one line of
// JSON. Usage: OSTLER_PEERS=<folder with node_modules> node anthropic_client.mjs <base URL>
// `tests/it/peers.rs` has the script for this program and asserts on its output.

import { createRequire } from "node:module";
import { join } from "node:path";

const baseURL = process.argv[2];
if (!baseURL || !process.env.OSTLER_PEERS) {
  console.error("usage: OSTLER_PEERS=<folder with node_modules> node anthropic_client.mjs <base URL>");
  process.exit(2);
}
const load = createRequire(join(process.env.OSTLER_PEERS, "package.json"));
const { default: Anthropic, APIError } = load("@anthropic-ai/sdk");
const client = new Anthropic({ baseURL, apiKey: "test", authToken: null, maxRetries: 0, timeout: 20_000 });

const tools = ["Bash", "Read"].map((name) => ({ name, input_schema: { type: "object" } }));

function ask(prompt) {
  return { model: "claude-test", max_tokens: 64, tools, messages: [{ role: "user", content: prompt }] };
}

async function streamed() {
  const stream = client.messages.stream(ask("stream text"));
  const pieces = [];
  stream.on("text", (piece) => pieces.push(piece));
  const message = await stream.finalMessage();
  const { id, content, stop_reason, usage, model } = message;
  return { id, content, stop_reason, usage, model, pieces };
}

async function toolLoop() {
  const request = ask("use tools");
  const first = await client.messages.stream(request).finalMessage();
  const calls = first.content.filter((block) => block.type === "tool_use");
  const results = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: `ran ${call.name}` }));
  const messages = [
    ...request.messages,
    { role: "assistant", content: first.content },
    { role: "user", content: results },
  ];
  const last = await client.messages.stream({ ...request, messages }).finalMessage();
  return { first: first.content, first_stop_reason: first.stop_reason, last: last.content };
}

async function whole() {
  const { data, request_id } = await client.messages.create(ask("whole text")).withResponse();
  return { content: data.content, stop_reason: data.stop_reason, request_id };
}

// The error that the library throws; `unexpected` if the call succeeds.
async function failure(call) {
  try {
    return { unexpected: await call() };
  } catch (error) {
    return {
      is_api_error: error instanceof APIError,
      status: error.status ?? null,
      type: error.error?.error?.type ?? null,
      retry_after: error.headers?.get("retry-after") ?? null,
      message: String(error.message),
    };
  }
}

const facts = {
  streamed: await streamed(),
  tool_loop: await toolLoop(),
  whole: await whole(),
  counted: await client.messages.countTokens({ model: "claude-test", messages: ask("count").messages }),
  models: (await client.models.list()).data.map((model) => model.id),
  overloaded: await failure(() => client.messages.create(ask("overloaded"))),
  error_event: await failure(() => client.messages.stream(ask("error event")).finalMessage()),
  cut: await failure(() => client.messages.stream(ask("cut")).finalMessage()),
  malformed: await failure(() => client.messages.stream(ask("malformed")).finalMessage()),
};
console.log(JSON.stringify(facts));
