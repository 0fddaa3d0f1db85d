// A scripted model: the Messages API over HTTP on this machine, with streamed answers.

import { createServer } from "node:http";
import { setImmediate as breath } from "node:timers/promises";

const USAGE = { input_tokens: 1200, output_tokens: 1, cache_read_input_tokens: 18_000, cache_creation_input_tokens: 800 };

export class Model {
  /**
   * `script` receives the request and returns the answer: a text, or `{thinking, text, calls: [{name, input}],
   * between}`, or several `{parts: [{thinking, text}, …]}`; `between` is awaited before each delta of the text.
   */
  constructor(script) {
    this.script = script;
    this.calls = 0;
    this.server = createServer((request, response) => void this.answer(request, response).catch(() => response.destroy()));
  }

  async start() {
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  async answer(request, response) {
    let body = "";
    for await (const part of request) body += part;
    if (!request.url.startsWith("/v1/messages") || request.url.includes("count_tokens")) return response.writeHead(404).end("{}");
    const asked = JSON.parse(body);
    const said = await this.script(asked);
    const answer = typeof said === "string" ? { text: said } : said;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const tell = (event) => response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    for await (const event of this.events(answer, asked.model)) tell(event);
    response.end();
  }

  async *events({ thinking, text, parts = [{ thinking, text }], calls = [], between }, model) {
    const id = `msg_${(this.calls += 1)}`;
    const message = { id, type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null, usage: USAGE };
    yield { type: "message_start", message };
    let index = 0;
    const block = async function* (start, deltas) {
      yield { type: "content_block_start", index, content_block: start };
      for (const delta of deltas) {
        // Other tasks run between deltas, as with a real model.
        await (between?.() ?? breath());
        yield { type: "content_block_delta", index, delta };
      }
      yield { type: "content_block_stop", index };
      index += 1;
    };
    for (const { thinking, text } of parts) {
      if (thinking) yield* block({ type: "thinking", thinking: "", signature: "" }, [{ type: "thinking_delta", thinking }, { type: "signature_delta", signature: "c2ln" }]);
      if (text) yield* block({ type: "text", text: "" }, pieces(text, parts.length).map((piece) => ({ type: "text_delta", text: piece })));
    }
    for (const [at, { name, input }] of calls.entries()) {
      const call = { type: "tool_use", id: `toolu_${this.calls}_${at}`, name, input: {} };
      yield* block(call, [{ type: "input_json_delta", partial_json: JSON.stringify(input) }]);
    }
    yield { type: "message_delta", delta: { stop_reason: calls.length > 0 ? "tool_use" : "end_turn", stop_sequence: null }, usage: { output_tokens: 250 } };
    yield { type: "message_stop" };
  }

  async end() {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }
}

/** Word by word, unless there are very many texts. */
const pieces = (text, count) => (count > 100 ? [text] : text.match(/\s*\S+\s*/g));

/** The texts of the last message to the model. */
export function lastSaid({ messages }) {
  const { content } = messages.at(-1);
  if (typeof content === "string") return content;
  return content.map((block) => block.text ?? (block.type === "tool_result" ? `result: ${JSON.stringify(block.content)}` : "")).join("\n");
}
