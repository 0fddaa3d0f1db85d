// The client of the server's API. Every failure is an `ApiError` with a message for people; `hint` says what to do.

import type { Message } from "@ag-ui/core";
import type {
  Approval,
  Check,
  Engine,
  Firing,
  Granted,
  KnownBrowser,
  Listing,
  LogEntry,
  McpServer,
  McpServerConfig,
  Me,
  Part,
  Rewound,
  Run,
  RunChanges,
  Schedule,
  Session,
  SessionUsage,
  SkillList,
  SkillText,
  Task,
  Usage,
  User,
} from "./types";
import { keepPageKey, withPageKey } from "./page-key";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint?: string,
    readonly field?: string,
  ) {
    super(message);
  }
}

/** Called when this browser is not signed in (any more). */
let onStranger: () => void = () => {};
export function whenStranger(heard: () => void): void {
  onStranger = heard;
}

export async function failure(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text);
    return new ApiError(response.status, error.code, error.message, error.hint, error.field);
  } catch {
    return new ApiError(response.status, "unreadable", `The server answered ${response.status} without a reason.`);
  }
}

export async function request(method: string, path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { method, credentials: "same-origin", ...init, headers: withPageKey(init.headers) });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "The server cannot be reached.", "The page retries by itself.");
  }
  if (response.ok) return response;
  if (response.status === 401 && path !== "/api/auth/session") onStranger();
  throw await failure(response);
}

export async function call<T>(method: string, path: string, body?: unknown, headers?: HeadersInit): Promise<T> {
  const init: RequestInit = { headers: { ...headers } };
  // The server refuses requests that a form of another site could send, also without a body.
  if (body !== undefined || method === "POST") {
    init.body = JSON.stringify(body ?? {});
    init.headers = { ...headers, "content-type": "application/json" };
  }
  const response = await request(method, path, init);
  if (response.status === 204) return undefined as T;
  return (await response.json()) as T;
}

const id = encodeURIComponent;

function query(asked: Record<string, string | number | undefined>): string {
  const said = Object.entries(asked).filter(([, value]) => value !== undefined && value !== "");
  return new URLSearchParams(said.map(([name, value]) => [name, String(value)])).toString();
}

/** All items of a list, which the server returns in pages. */
async function all<T extends { id: string }>(path: string): Promise<T[]> {
  const found: T[] = [];
  for (;;) {
    const after = found.at(-1)?.id;
    const { items } = await call<Listing<T>>("GET", `${path}?limit=500${after ? `&after=${id(after)}` : ""}`);
    found.push(...items);
    if (items.length < 500) return found;
  }
}

export interface Decision {
  approved: boolean;
  scope?: "once" | "session" | "always";
  rule?: string;
  /** Confirms a rule that allows every use of its tool. */
  wholeTool?: boolean;
  /** The rule also answers for runs that hooks and schedules start. */
  unattended?: boolean;
  note?: string;
  stop?: boolean;
  digest?: string;
}

export interface Answers {
  answers?: Record<string, string | string[]>;
  declined?: boolean;
  note?: string;
  digest?: string;
}

export const api = {
  me: () => call<Me>("GET", "/api/auth/me"),
  async enter(code: string): Promise<Me> {
    const { pageKey, ...me } = await call<Me & { pageKey: string }>("POST", "/api/auth/session", { code });
    keepPageKey(pageKey);
    return me;
  },
  leave: () => call<void>("DELETE", "/api/auth/session"),
  /** Exchanges a token for a code. The token is used once and not stored. */
  codeFor: (token: string) =>
    call<{ code: string }>("POST", "/api/auth/code", {}, { authorization: `Bearer ${token}` }),

  /** Newest activity first. */
  sessions: (asked: { q?: string; after?: string; limit?: number } = {}, signal?: AbortSignal) =>
    request("GET", `/api/sessions?${query(asked)}`, signal ? { signal } : {}).then((it) => it.json() as Promise<Part<Session>>),
  session: (session: string) => call<Session>("GET", `/api/sessions/${id(session)}`),
  createSession: (body: { title?: string; permissionMode?: string; model?: string }) =>
    call<Session>("POST", "/api/sessions", body),
  renameSession: (session: string, title: string) =>
    call<Session>("PATCH", `/api/sessions/${id(session)}`, { title }),
  forgetSession: (session: string) => call<void>("DELETE", `/api/sessions/${id(session)}`),
  async log(session: string): Promise<LogEntry[]> {
    const found: LogEntry[] = [];
    for (;;) {
      const path = `/api/sessions/${id(session)}/log?limit=500&after=${found.at(-1)?.seq ?? 0}`;
      const { items } = await call<Listing<LogEntry>>("GET", path);
      found.push(...items);
      if (items.length === 0) return found;
    }
  },
  fork: (session: string, body: { before?: string; title?: string }) =>
    call<Session>("POST", `/api/sessions/${id(session)}/fork`, body),
  changes: (session: string) => call<{ runs: RunChanges[]; added: number; removed: number }>("GET", `/api/sessions/${id(session)}/changes`),
  rewind: (session: string, before: string, dryRun: boolean) =>
    call<Rewound>("POST", `/api/sessions/${id(session)}/rewind`, { before, dryRun }),
  mcpServers: (session: string) => call<Listing<McpServer>>("GET", `/api/sessions/${id(session)}/mcp-servers`),
  putMcpServer: (session: string, name: string, config: McpServerConfig) =>
    call<void>("PUT", `/api/sessions/${id(session)}/mcp-servers/${id(name)}`, config),
  removeMcpServer: (session: string, name: string) => call<void>("DELETE", `/api/sessions/${id(session)}/mcp-servers/${id(name)}`),
  switchMcpServer: (session: string, name: string, on: boolean) =>
    call<void>("PUT", `/api/sessions/${id(session)}/mcp-servers/${id(name)}/use`, { on }),
  signInToMcpServer: (session: string, name: string) =>
    call<{ url: string }>("POST", `/api/sessions/${id(session)}/mcp-servers/${id(name)}/sign-in`),
  finishMcpSignIn: (url: string) => call<{ session: string; server: string }>("POST", "/api/mcp/sign-in", { url }),
  engine: (session: string) => call<Engine>("GET", `/api/sessions/${id(session)}/setup`),
  /** The messages before an event. */
  messages: (session: string, before: number) =>
    call<{ items: Message[]; earlier?: number }>("GET", `/api/sessions/${id(session)}/messages?before=${before}`),
  /** The run that a user message started. */
  async runOf(session: string, message: string): Promise<string> {
    const { runId } = await call<{ runId?: string }>("GET", `/api/sessions/${id(session)}/messages/${id(message)}/run`);
    if (!runId) throw new ApiError(404, "steered", "This prompt was sent into a running turn.", "Edit the prompt that started that turn.");
    return runId;
  },
  /** The commands available in this session; the engine lists them when it starts. */
  async commands(session: string): Promise<{ text: string; hint?: string }[]> {
    const { commands } = await api.engine(session);
    return commands.map(({ name, description, argumentHint }) => ({
      text: `/${name}`, hint: [argumentHint, description].filter(Boolean).join(" · "),
    }));
  },
  files: (session: string, q: string, signal: AbortSignal) =>
    request("GET", `/api/sessions/${id(session)}/files?${query({ limit: 8, q })}`, { signal })
      .then((response) => response.json() as Promise<Listing<{ path: string; kind: "file" | "folder" }>>),
  runs: (session: string) => call<Listing<Run>>("GET", `/api/sessions/${id(session)}/runs`),
  say: (session: string, prompt: string, push: boolean) =>
    call<Run>("POST", `/api/sessions/${id(session)}/runs`, { prompt, push }),
  cancelRun: (run: string) => call<Run>("POST", `/api/runs/${id(run)}/cancel`),
  resumeRun: (run: string) => call<Run>("POST", `/api/runs/${id(run)}/resume`),
  stop: (threadId: string) => call<{ stopped: boolean }>("POST", "/agui/stop", { threadId }),

  decide: (approval: string, decision: Decision) =>
    call<Approval>("POST", `/api/approvals/${id(approval)}/decision`, decision),
  answer: (question: string, answers: Answers) =>
    call<Approval>("POST", `/api/questions/${id(question)}/answers`, answers),
  rules: () => call<Listing<Granted>>("GET", "/api/rules"),
  revokeRule: (rule: string) => call<void>("DELETE", `/api/rules/${id(rule)}`),

  usage: (days: number) => call<Usage>("GET", `/api/usage?days=${days}`),
  sessionUsage: (session: string) => call<SessionUsage>("GET", `/api/sessions/${id(session)}/usage`),

  skill: (skill: string) => call<SkillText>("GET", `/api/skills/${id(skill)}`),
  skills: () => call<SkillList>("GET", "/api/skills"),
  tasks: () => all<Task>("/api/tasks"),
  task: (task: string) => call<Task>("GET", `/api/tasks/${id(task)}`),
  createTask: (body: Record<string, unknown>) => call<Task>("POST", "/api/tasks", body),
  executeTask: (task: string) => call<Task>("POST", `/api/tasks/${id(task)}/execute`),
  cancelTask: (task: string) => call<Task>("POST", `/api/tasks/${id(task)}/cancel`),
  removeTask: (task: string) => call<void>("DELETE", `/api/tasks/${id(task)}`),

  schedules: () => all<Schedule>("/api/schedules"),
  createSchedule: (body: Record<string, unknown>) => call<Schedule>("POST", "/api/schedules", body),
  pauseSchedule: (schedule: string, paused: boolean) =>
    call<Schedule>("POST", `/api/schedules/${id(schedule)}/${paused ? "pause" : "resume"}`),
  runSchedule: (schedule: string) => call<Firing>("POST", `/api/schedules/${id(schedule)}/run`),
  removeSchedule: (schedule: string) => call<void>("DELETE", `/api/schedules/${id(schedule)}`),

  doctor: () => call<{ checks: Check[] }>("GET", "/api/doctor"),
  browsers: () => call<Listing<KnownBrowser>>("GET", "/api/auth/browsers"),
  removeBrowser: (browser: string) => call<void>("DELETE", `/api/auth/browsers/${id(browser)}`),
  users: () => call<{ users: User[] }>("GET", "/api/users"),
  addUser: (name: string, role: string) => call<User>("POST", "/api/users", { name, role }),
  removeUser: (name: string) => call<void>("DELETE", `/api/users/${id(name)}`),
  issueToken: (name: string, label: string) =>
    call<{ id: string; token: string }>("POST", `/api/users/${id(name)}/tokens`, { label }),
  revokeToken: (name: string, token: string) =>
    call<void>("DELETE", `/api/users/${id(name)}/tokens/${id(token)}`),
};
