// A real `ostler serve` with its own folders.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** Commands with which tests hold a run until they release it. They need a rule: loops require approval. */
const WAIT = "until [ -e go ]; do sleep 0.05; done";
const SETTINGS = JSON.stringify({ permissions: { allow: [`Bash(${WAIT})`, `Bash(${WAIT}; echo passed)`] } });

// The server is started in another folder.
const PROGRAM = process.env.OSTLER_PROGRAM && resolve(process.env.OSTLER_PROGRAM);

const SKILL = `---
name: greet
description: Greets a person.
inputs:
  - name: who
    type: string
    required: true
    description: Who is greeted
  - name: times
    type: integer
    description: How often
---
Greet {{ who }}.
`;

export class Server {
  /** With the scripted `model` of a test; otherwise the offline model answers. `settings` in place of the usual ones. */
  constructor({ model, settings } = {}) {
    this.model = model;
    this.settings = settings ? JSON.stringify(settings) : SETTINGS;
    this.folder = mkdtempSync(join(tmpdir(), "ostler-page-"));
    this.workspace = join(this.folder, "workspace");
    mkdirSync(join(this.folder, "skills", "greet"), { recursive: true });
    mkdirSync(this.workspace);
    writeFileSync(join(this.folder, "skills", "greet", "SKILL.md"), SKILL);
    writeFileSync(join(this.workspace, "README.md"), "# A project\n\nNothing yet.\n");
  }

  async start(listen = this.address ?? "127.0.0.1:0") {
    const args = ["serve", "--trust-members", "--settings", this.settings, "--listen", listen, "--data", join(this.folder, "data"), "--skills", join(this.folder, "skills")];
    const env = { ...process.env, HOME: this.folder };
    for (const name of Object.keys(env)) if (/^(ANTHROPIC|CLAUDE)_/.test(name)) delete env[name];
    if (!this.model) env.OSTLER_OFFLINE = "1";
    if (this.model) Object.assign(env, { ANTHROPIC_BASE_URL: this.model.url, ANTHROPIC_API_KEY: "none" });
    this.child = spawn(PROGRAM, [...args, "--show-code", "--show-token"], { cwd: this.workspace, env, stdio: ["ignore", "pipe", "pipe"] });
    this.errors = "";
    this.child.stderr.on("data", (data) => (this.errors += data));
    this.ended = new Promise((done) => this.child.once("exit", done));
    const found = {};
    for await (const line of createInterface({ input: this.child.stdout })) {
      if (line.startsWith("listening on ")) found.url = line.slice("listening on ".length);
      if (line.startsWith("token: ")) found.token = line.slice("token: ".length);
      if (line.startsWith("code for one browser")) found.code = line.split(": ").pop();
      if (found.url && found.token && found.code) break;
    }
    if (!found.code) throw new Error(`the server did not start: ${this.errors}`);
    Object.assign(this, found, { address: new URL(found.url).host });
    return this;
  }

  async call(method, path, body) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    const response = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? undefined : response.json();
  }

  /** A code for another browser. */
  async anotherCode() {
    return (await this.call("POST", "/api/auth/code", {})).code;
  }

  async stop(signal = "SIGTERM") {
    if (this.child?.exitCode === null) this.child.kill(signal);
    await this.ended;
  }

  async end() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
