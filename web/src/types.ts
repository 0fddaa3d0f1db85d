// Types of the server's REST interface and its WebSocket; described in /openapi.json.

export interface Listing<T> {
  items: T[];
}

/** A page of a list; `next` is the cursor of the rest. */
export interface Part<T> extends Listing<T> {
  next?: string;
}

export interface Tokens {
  input: number;
  output: number;
  cacheRead: number;
  cacheCreation: number;
}

export interface Me {
  user: string;
  role: "member" | "admin" | "owner";
}

export interface Session {
  id: string;
  owner: string;
  title: string;
  created: number;
  lastActivity: number;
  runs: number;
  costUsd: number;
  tokens: Tokens;
  key?: string;
  forkedFrom?: { session: string; run?: string };
  setup: { cwd?: string; model?: string; mode?: string; task?: string; space?: string };
}

export type RunState = "queued" | "running" | "waiting" | "completed" | "failed" | "cancelled" | "interrupted";

export interface Run {
  id: string;
  session: string;
  owner: string;
  prompt: string;
  state: RunState;
  created: number;
  started?: number;
  ended?: number;
  outcome?: { result?: string; error?: { code: string; message: string }; costUsd: number; turns: number };
}

export const isOver = (state: RunState): boolean => !["queued", "running", "waiting"].includes(state);

export type Scope = "once" | "session" | "always";

/** A pending approval, with the field names of REST; the WebSocket uses other names. */
export interface Approval {
  id: string;
  kind: "permission" | "question";
  session: string;
  run: string;
  toolName: string;
  toolUseId?: string;
  agentId?: string;
  input: Record<string, unknown>;
  digest: string;
  summary: string;
  /** What the call does and which program makes it, in a sentence. */
  description?: string;
  reason?: string;
  /** The steps that led to the question; the last one decided. */
  why?: { looked: string; result: string; decided?: boolean }[];
  /** The labels of `offers`, in their order. */
  rules: string[];
  /** What "session" and "always" can grant. Empty: the call can only be allowed once. */
  offers?: { label: string; rules: ToolRule[]; wholeTool: boolean }[];
  /** Where the call would run; "always" applies in this folder. */
  origin?: { folder: string; space?: string; unattended?: boolean };
  /** Secrets are redacted here; the call runs with them. */
  redacted?: boolean;
  asked: number;
  expires?: number;
}

/** A permission rule: a tool, or some uses of it. */
export interface ToolRule {
  toolName: string;
  ruleContent?: string;
}

export interface Question {
  question: string;
  header?: string;
  multiSelect?: boolean;
  options?: { label: string; description?: string; preview?: string }[];
}

export interface Granted {
  id: string;
  owner: string;
  session?: string;
  /** The folder of the sessions to which it applies. */
  folder?: string;
  space?: string;
  unattended?: boolean;
  rule: string;
  rules: ToolRule[];
  by: string;
  created: number;
  lastUsed?: number;
}

export interface SkillInput {
  name: string;
  required: boolean;
  description?: string;
  type?: "string" | "number" | "integer" | "boolean" | "array" | "object";
  allowed?: unknown[];
  default?: unknown;
}

export interface Skill {
  id: string;
  name: string;
  description: string;
  source: string;
  tools?: string[];
  inputs: SkillInput[];
}

export interface SkillList {
  items: Skill[];
  problems: string[];
}

/** A skill with its text. */
export interface SkillText extends Skill {
  model?: string;
  frontMatter: Record<string, unknown>;
  body: string;
}

export interface Spent {
  runs: number;
  costUsd: number;
  tokens: Tokens;
}

export interface Usage {
  from: string;
  to: string;
  days: { day: string; models: (Spent & { model: string })[] }[];
  total: Spent;
}

export interface ToolTime {
  name: string;
  count: number;
  totalMs: number;
  longestMs: number;
}

export interface SessionUsage {
  runs: { run: string; prompt: string; ended: number; durationMs: number; costUsd: number; tokens: Tokens; cacheShare?: number; tools: ToolTime[] }[];
  total: Spent;
  tools: ToolTime[];
  context?: { used: number; size?: number };
}

export interface ChangedFile {
  path: string;
  kind: "created" | "edited";
  added: number;
  removed: number;
  diff?: string;
  cut: boolean;
}

export interface RunChanges {
  run: string;
  prompt: string;
  at: number;
  files: ChangedFile[];
  /** More files were changed than are listed. */
  cut: boolean;
}

export interface Rewound {
  dryRun: boolean;
  files: string[];
  insertions?: number;
  deletions?: number;
}

/** The reported setup of an engine. */
export interface Sandbox {
  backend: string;
  layers: { namespaces: boolean; landlock: boolean; seccomp: boolean };
  user: number;
  writable: string[];
  protected: string[];
  hidden: string[];
  network: string;
  unixSockets: string;
  /** Those of a command; `session` has those of all commands together. */
  limits: Record<string, number | null | Record<string, number | null>>;
  /** What enforces each limit, by its name: `memory`, `session.memory`. */
  limitsBy?: Record<string, string>;
  missing: string[];
}

/** An MCP server of a session. */
export interface McpServer {
  name: string;
  from: "space" | "session";
  type: "stdio" | "http" | "sse";
  /** The program with its arguments, or the address. */
  summary: string;
  /** The names of its variables or headers. */
  variables: string[];
  shared: boolean;
  by: string;
  at: number;
  on: boolean;
  /** Why it does not start. */
  problem?: string;
  /** The state in the running engine. */
  status?: string;
  error?: string;
  tools?: number;
}

export type McpServerConfig =
  | { type: "stdio"; command: string; args?: string[]; env?: Record<string, string>; shared?: boolean }
  | { type: "http" | "sse"; url: string; headers?: Record<string, string> };

export interface Engine {
  at?: number;
  model?: string;
  permissionMode?: string;
  cwd?: string;
  version?: string;
  tools: string[];
  agents: { name: string; description?: string }[];
  skills: string[];
  commands: { name: string; description?: string; argumentHint?: string }[];
  mcpServers: { name: string; status: string; error?: string; tools?: number }[];
  /** What a sandbox enforces for its commands; missing without a sandbox. */
  sandbox?: Sandbox;
  live: boolean;
}

export interface Check {
  id: string;
  title: string;
  state: "ok" | "warn" | "fail";
  says: string;
  next?: string;
}

/** A signed-in browser. */
export interface KnownBrowser {
  id: string;
  user: string;
  label?: string;
  made: number;
  used: number;
  expires: number;
  current: boolean;
}

export interface Task {
  id: string;
  owner: string;
  name: string;
  agentId?: string;
  taskType: "skill" | "agent";
  userPrompt: string;
  inputValues: Record<string, unknown>;
  created: number;
  execution?: { session: string; run: string };
  status: string;
  started?: number;
  ended?: number;
  duration?: number;
  result?: string;
  error?: { code: string; message: string };
}

export interface Firing {
  id: string;
  planned: number;
  state: string;
  session?: string;
  note?: string;
}

export interface Schedule {
  id: string;
  name: string;
  state: "active" | "paused" | "ended";
  start: { kind: "prompt" | "session" | "task"; prompt?: string; task?: string };
  when: Record<string, unknown>;
  nextRuns: number[];
  last?: Firing;
}

export interface User {
  name: string;
  role: "member" | "admin";
  tokens: { id: string; label: string }[];
}

export interface LogEntry {
  seq: number;
  at: number;
  kind: string;
  body: Record<string, unknown>;
}
