// Drives the official TypeScript SDK for the runner: see README.md, "The driver protocol".
// SDK_MODULE and ZOD_MODULE name the files to import.

import { createInterface } from 'node:readline';

const sdk = await import(process.env.SDK_MODULE);
const { z } = await import(process.env.ZOD_MODULE);

const runs = new Map();

function emit(run, kind, payload) {
  process.stdout.write(`${JSON.stringify({ run, [kind]: payload })}\n`);
}

/** Class names are minified, but the one class that hosts look for is exported. */
const named = (error) => ({
  name: error instanceof sdk.AbortError ? 'AbortError' : (error?.name ?? typeof error),
  message: String(error?.message ?? error),
});

/** The iterable prompt for the SDK: filled by `send`, ended by `end`. */
class Input {
  waiting = [];
  wake = () => {};
  ended = false;

  push(message) {
    this.waiting.push(message);
    this.wake();
  }

  end() {
    this.ended = true;
    this.wake();
  }

  async *[Symbol.asyncIterator]() {
    for (;;) {
      while (this.waiting.length > 0) yield this.waiting.shift();
      if (this.ended) return;
      await new Promise((resolve) => (this.wake = resolve));
    }
  }
}

class Run {
  questions = new Map();
  input = new Input();
  abort = new AbortController();

  constructor(id, session) {
    this.id = id;
    this.session = session;
  }

  /** Asks the runner, and waits for its answer however long that takes. */
  question(kind, payload, signal) {
    const id = `${kind}-${this.questions.size + 1}`;
    const answer = new Promise((resolve, reject) => this.questions.set(id, { resolve, reject }));
    signal?.addEventListener('abort', () => emit(this.id, 'withdrawn', { id, kind }));
    emit(this.id, kind, { id, ...payload });
    return answer;
  }

  answer({ id, value, error }) {
    const { resolve, reject } = this.questions.get(id);
    if (error === undefined) resolve(value);
    else reject(new Error(error));
  }

  hooks() {
    const events = {};
    for (const { event, ...matcher } of this.session.hooks) {
      const callback = (input, toolUseID, { signal }) => this.question('hook', { event, input }, signal);
      (events[event] ??= []).push({ ...matcher, hooks: [callback] });
    }
    return events;
  }

  server(name, { version, tools }) {
    const made = tools.map((tool) => {
      const fields = Object.entries(tool.fields).map(([field, type]) => [field, z[type]()]);
      const handler = (input) => this.question('tool', { server: name, name: tool.name, arguments: input });
      const extra = tool.annotations ? [{ annotations: tool.annotations }] : [];
      return sdk.tool(tool.name, tool.description, Object.fromEntries(fields), handler, ...extra);
    });
    return sdk.createSdkMcpServer({ name, version, tools: made });
  }

  options() {
    const { cli, cwd, env, options, ask, hooks, mcp, elicitation } = this.session;
    const all = { ...options, pathToClaudeCodeExecutable: cli, cwd, env, abortController: this.abort };
    if (ask) {
      all.canUseTool = (tool, input, { signal, ...context }) => this.question('ask', { tool, input, context }, signal);
    }
    if (hooks.length > 0) all.hooks = this.hooks();
    const servers = Object.entries(mcp).map(([name, server]) => [name, this.server(name, server)]);
    if (servers.length > 0) all.mcpServers = { ...all.mcpServers, ...Object.fromEntries(servers) };
    if (elicitation) {
      all.onElicitation = (request, { signal }) => this.question('elicitation', { request }, signal);
    }
    return all;
  }

  async play() {
    try {
      this.query = sdk.query({ prompt: this.session.prompt ?? this.input, options: this.options() });
      for await (const message of this.query) emit(this.id, 'message', message);
    } catch (error) {
      emit(this.id, 'thrown', named(error));
    }
    emit(this.id, 'ended', {});
  }

  async call({ id, method, args }) {
    try {
      if (typeof this.query[method] !== 'function') throw new Error(`this SDK has no ${method}`);
      const value = await this.query[method](...args);
      emit(this.id, 'returned', { id, method, value: value ?? null });
    } catch (error) {
      emit(this.id, 'returned', { id, method, error: named(error) });
    }
  }

  async do(command) {
    if (command.do === 'send') this.input.push(command.message);
    else if (command.do === 'end') this.input.end();
    else if (command.do === 'answer') this.answer(command);
    else if (command.do === 'call') await this.call(command);
    else if (command.do === 'abort') this.abort.abort();
    else throw new Error(`the driver cannot ${command.do}`);
  }
}

// An SDK that fails outside of any call would end all other runs too.
for (const trouble of ['unhandledRejection', 'uncaughtException']) {
  process.on(trouble, (error) => process.stderr.write(`${trouble}: ${error?.stack ?? error}\n`));
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  if (command.do === 'start') {
    const run = new Run(command.run, command.session);
    runs.set(command.run, run);
    void run.play();
  } else if (command.do === 'forget') {
    runs.get(command.run)?.abort.abort();
    runs.delete(command.run);
  } else {
    void runs.get(command.run)?.do(command);
  }
}
process.exit(0);
