// The open conversation: follows it over AG-UI, and sends the user's prompts.
//
// One stream at a time. Prompts go to `POST /agui`, whose answer is followed to its end. When a run is active that
// this page did not start (after a reload, a prompt or answer of another client, or a lost connection) it attaches:
// the server sends the whole conversation, and the active run from its start.

import type { AGUIEvent, RunAgentInput } from "@ag-ui/core";
import { signal } from "@preact/signals";
import { ApiError, api, request } from "../api";
import { type Attachment, type UserItem, earlierOf, fromMessages, toMessages } from "../agui/items";
import { portions } from "../agui/sse";
import { Thread } from "../agui/thread";
import { type Run, type SessionUsage, isOver } from "../types";
import { changed, complain, connection, live } from "./app";
import { listen } from "./news";

/** A conversation longer than this is not sent along with a prompt: the server knows it. */
const LARGEST = 1 << 20;
/** How long the old conversation is shown while the server sends it again. */
const PATIENCE = 700;

export interface Queued {
  run: string;
  text: string;
}

/** A prompt to send as soon as the session is open. */
export interface First {
  text: string;
  attached: Attachment[];
  isFork?: boolean;
}

export class Conversation {
  thread = new Thread();
  /** Counts changes of the thread; views subscribe to it. */
  readonly version = signal(0);
  readonly isLoading = signal(true);
  readonly isLoadingEarlier = signal(false);
  /** Why the session cannot be shown. */
  readonly failure = signal<ApiError | undefined>(undefined);
  /** The runs queued behind the active one. */
  readonly queued = signal<Queued[]>([]);
  /** The run that a stopped server interrupted, until the next prompt. */
  readonly cutOff = signal<string | undefined>(undefined);
  readonly usage = signal<SessionUsage | undefined>(undefined);
  private following: AbortController | undefined;
  /** The thread that is being received; it replaces the shown one. */
  private incoming = this.thread;
  private hasMissed = false;
  /** Prompts that are being queued. */
  private line: Promise<unknown> = Promise.resolve();
  private unlisten: () => void;
  private frame = 0;

  /** `first` is the first prompt of a new session, which has no messages yet unless it is a fork. */
  constructor(readonly session: string, first?: First) {
    this.unlisten = listen((message) => this.receive(message));
    const begin = first && (() => void this.say(first.text, first.attached, "turn"));
    if (!begin || first.isFork) void this.attach().then(begin);
    else {
      this.isLoading.value = false;
      begin();
    }
  }

  close(): void {
    this.unlisten();
    this.following?.abort();
    cancelAnimationFrame(this.frame);
  }

  get isWorking(): boolean {
    return this.thread.phase !== "idle";
  }

  /** Sends a prompt: as a separate turn, queued behind the active one, or into it. */
  async say(text: string, attached: Attachment[], how: "turn" | "queue" | "steer"): Promise<void> {
    if (how !== "turn") return this.sayLater(text, how);
    this.cutOff.value = undefined;
    const item: UserItem = { id: crypto.randomUUID(), kind: "user", text, attached };
    this.thread.say(item);
    // The server compares the user's messages; it knows the rest, which may be long.
    const input = this.input(toMessages(this.thread.items).filter((message) => message.role === "user"));
    if (JSON.stringify(input).length > LARGEST && attached.length === 0) {
      await api.say(this.session, text, false);
      return this.attach();
    }
    await this.follow("/agui", input, this.thread);
  }

  /** Resumes the interrupted run. */
  async resume(run: string): Promise<void> {
    this.cutOff.value = undefined;
    await api.resumeRun(run);
    await this.attach();
  }

  async stop(): Promise<void> {
    const waiting = this.queued.peek();
    // The last first: a queued run must not start when the active one has ended.
    for (const { run } of [...waiting].reverse()) await api.cancelRun(run);
    await api.stop(this.session);
    // No stream follows a waiting turn at the moment.
    if (this.thread.phase === "waiting") await this.attach();
  }

  /** Loads the whole conversation again. */
  async attach(): Promise<void> {
    await this.follow("/agui/connect", this.input([]), new Thread(this.thread));
  }

  /** Shows the page before the first message. */
  async loadEarlier(): Promise<void> {
    const { thread } = this;
    if (!thread.earlier || this.isLoadingEarlier.peek()) return;
    this.isLoadingEarlier.value = true;
    try {
      const { items } = await api.messages(this.session, thread.earlier.before);
      thread.prepend(fromMessages(items), earlierOf(items));
    } finally {
      this.isLoadingEarlier.value = false;
      this.draw();
    }
  }

  private input(said: RunAgentInput["messages"]): RunAgentInput {
    const { earlier } = this.thread;
    // Tells the server that the messages before it were not withdrawn.
    const messages = earlier && said.length > 0 ? [{ id: earlier.id, role: "system" as const, content: earlier.text }, ...said] : said;
    return {
      threadId: this.session,
      runId: crypto.randomUUID(),
      protocolVersion: "1.0",
      messages,
      tools: [],
      context: [],
      forwardedProps: {},
    };
  }

  private async sayLater(text: string, how: "queue" | "steer"): Promise<void> {
    if (how === "queue") {
      // One after the other, to keep their order.
      const sent = this.line.then(() => api.say(this.session, text, false));
      this.line = sent.catch(() => undefined);
      const run = await sent;
      this.queued.value = [...this.queued.peek(), { run: run.id, text }];
      return;
    }
    // Shown before it is sent: the server may report it before it answers.
    const said = `said-${crypto.randomUUID()}`;
    this.thread.say({ id: said, kind: "user", text, attached: [], isLocal: true });
    this.draw();
    try {
      await api.say(this.session, text, true);
    } catch (error) {
      this.thread.unsay(said);
      this.draw();
      throw error;
    }
  }

  private async follow(path: string, input: RunAgentInput, thread: Thread): Promise<void> {
    this.following?.abort();
    const following = new AbortController();
    const since = Date.now();
    this.following = following;
    this.hasMissed = false;
    this.incoming = thread;
    thread.phase = "running";
    if (thread === this.thread) this.draw();
    try {
      const init = { signal: following.signal, headers: HEADERS, body: JSON.stringify(input) };
      const response = await request("POST", path, init);
      for await (const events of portions<AGUIEvent>(response)) {
        if (following.signal.aborted) return;
        for (const event of events) {
          if (isSignedOut(event)) throw new ApiError(401, "signed_out", "You were signed out.");
          thread.apply(event, Date.now());
        }
        if (!this.isCaughtUp(thread, since)) continue;
        this.thread = thread;
        this.isLoading.value = false;
        this.failure.value = undefined;
        this.draw();
      }
      // A broken stream does not mean the end of the run.
      if (thread.phase === "running") throw new ApiError(0, "broken", "The connection to the run was lost.");
    } catch (error) {
      if (following.signal.aborted) return;
      this.fail(error);
      return;
    } finally {
      if (this.following === following) this.following = undefined;
    }
    void this.count();
    if (this.hasMissed) await this.attach();
  }

  /** The received thread replaces the shown one when it has come as far, so that nothing jumps; or after a while. */
  private isCaughtUp(thread: Thread, since: number): boolean {
    const isLonger = thread.items.length >= this.thread.items.length;
    return thread === this.thread || isLonger || thread.phase !== "running" || Date.now() - since > PATIENCE;
  }

  private fail(error: unknown): void {
    this.isLoading.value = false;
    this.hasMissed = true;
    // If this browser is really signed out, the answer shows the sign-in page.
    if (error instanceof ApiError && error.code === "signed_out") void api.me().catch(() => {});
    const refused = error instanceof ApiError && error.status >= 400 && error.status !== 401;
    if (refused && this.thread.items.length === 0) this.failure.value = error;
    else if (refused) complain(error);
    if (refused) this.thread.phase = "idle";
    this.incoming = this.thread;
    this.draw();
    // While the server is unreachable, the WebSocket notices when it is back. If the WebSocket never lost it, attach now.
    if (!refused && connection.peek() === "open") setTimeout(() => void this.catchUp(), 1000);
  }

  private catchUp(): void {
    if (this.hasMissed && !this.following) void this.attach();
  }

  private receive(message: Record<string, unknown> & { type: string }): void {
    if (message.type === "hello") {
      // Events may have been missed.
      if (this.following === undefined) void this.attach();
      return;
    }
    const run = message.run as Run | undefined;
    const isHere = message.sessionId === this.session || run?.session === this.session;
    if (!isHere) return;
    if (message.type === "run" && run) {
      // A run that was queued is not the followed one, even if the end of that one has not arrived yet.
      if (this.following && this.queued.peek().some((it) => it.run === run.id)) this.hasMissed ||= run.state === "running";
      if (run.state !== "queued") this.queued.value = this.queued.peek().filter((it) => it.run !== run.id);
      const isNews = isOver(run.state) ? this.thread.phase !== "idle" : run.state === "running";
      if (isNews) this.lookAgain();
      else if (isOver(run.state)) void this.count();
    } else if (message.type.endsWith("_resolved")) this.lookAgain();
  }

  /** A run is active that is not followed. */
  private lookAgain(): void {
    if (this.following) this.hasMissed ||= this.incoming.phase !== "running";
    else void this.attach();
  }

  private async count(): Promise<void> {
    const { items } = await api.runs(this.session).catch(() => ({ items: [] }));
    this.usage.value = await api.sessionUsage(this.session).catch(() => undefined);
    this.queued.value = items.filter((run) => run.state === "queued").map((run) => ({ run: run.id, text: run.prompt }));
    const newest = items.at(-1);
    this.cutOff.value = newest?.state === "interrupted" ? newest.id : undefined;
    const last = items.findLast((run) => !isOver(run.state) && run.state !== "queued");
    if (last) changed(last);
    else if (live.peek().has(this.session)) {
      live.value = new Map([...live.peek()].filter(([session]) => session !== this.session));
    }
  }

  /** At most once per frame, however many deltas arrive. */
  private draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.version.value++);
  }
}

/** How the server ends the stream of a caller whose user, role, token or sign-in changed. */
function isSignedOut(event: AGUIEvent): boolean {
  return event.type === "RUN_ERROR" && event.code === "signed_out";
}

const HEADERS = { "content-type": "application/json", accept: "text/event-stream" };
