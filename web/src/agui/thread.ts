// Builds a conversation from AG-UI events. No network, no clock and no DOM.
// Changed items are replaced, so that views see by identity what changed.

import type {
  AGUIEvent,
  Interrupt,
  RunFinishedEvent,
  TokenUsage,
  ToolCallArgsEvent,
  ToolCallEndEvent,
  ToolCallResultEvent,
  ToolCallStartEvent,
} from "@ag-ui/core";
import { apply as patch } from "./patch";
import { type Earlier, type Item, TODOS, earlierOf, fromMessages, laneOf, spoken, todos } from "./items";

type CallEvent = ToolCallStartEvent | ToolCallArgsEvent | ToolCallEndEvent | ToolCallResultEvent;
export type Phase = "idle" | "running" | "waiting";

export class Thread {
  items: Item[] = [];
  phase: Phase = "idle";
  /** What the current run waits for. */
  interrupts: Interrupt[] = [];
  usage: TokenUsage[] = [];
  /** The error at the end of the last run. */
  error: { message: string; code?: string } | undefined;
  wasCancelled = false;
  /** The cursor of the messages before the first one, if there are any. */
  earlier: Earlier | undefined;
  private places = new Map<string, number>();
  private activities = new Map<string, Record<string, unknown>>();

  /** `before` is the previous state: its earlier pages need not be loaded again. */
  constructor(private before?: Thread) {}

  /** Applies an event; `now` is its time of arrival. */
  apply(event: AGUIEvent, now: number): void {
    switch (event.type) {
      case "RUN_STARTED":
        this.phase = "running";
        this.error = undefined;
        this.wasCancelled = false;
        this.interrupts = [];
        return;
      case "RUN_FINISHED":
        return this.finish(event);
      case "RUN_ERROR":
        this.phase = "idle";
        this.error = { message: event.message, ...(event.code === undefined ? {} : { code: event.code }) };
        return;
      case "MESSAGES_SNAPSHOT":
        return this.snapshot(fromMessages(event.messages), earlierOf(event.messages));
      case "TEXT_MESSAGE_START":
        if (event.role === "user") return this.add({ id: event.messageId, kind: "user", text: "", attached: [] });
        return this.add({ id: event.messageId, kind: "text", text: "", done: false, ...lane(event) });
      case "TEXT_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_CONTENT":
        return this.change(event.messageId, (item) => ("text" in item ? { ...item, text: item.text + event.delta } : item));
      case "TEXT_MESSAGE_END":
      case "REASONING_MESSAGE_END":
        this.change(event.messageId, (item) => (item.kind === "text" || item.kind === "thinking" ? { ...item, done: true } : item));
        return this.settle(event.messageId);
      case "REASONING_MESSAGE_START":
        return this.add({ id: event.messageId, kind: "thinking", text: "", done: false, ...lane(event) });
      case "REASONING_ENCRYPTED_VALUE":
        return this.change(event.entityId, (item) =>
          item.kind === "thinking" ? { ...item, encrypted: event.encryptedValue } : item,
        );
      case "TOOL_CALL_START":
      case "TOOL_CALL_ARGS":
      case "TOOL_CALL_END":
      case "TOOL_CALL_RESULT":
        return this.call(event, now);
      case "ACTIVITY_SNAPSHOT":
        if (event.activityType === TODOS) this.activity(event.messageId, event.content, lane(event));
        return;
      case "ACTIVITY_DELTA": {
        const before = this.activities.get(event.messageId);
        const after = before && patch(before, event.patch);
        if (after) this.activity(event.messageId, after, lane(event));
        return;
      }
      case "CUSTOM":
        return this.remark(event.name, event.value);
      default:
        return;
    }
  }

  /** Adds a prompt of this page. */
  say(item: Item): void {
    this.add(item);
  }

  has(id: string): boolean {
    return this.places.has(id);
  }

  /** Removes a prompt that was not sent. */
  unsay(id: string): void {
    this.replace(this.items.filter((it) => it.id !== id));
  }

  /** The server's copy of a prompt of this page has arrived; the local one is removed. */
  private settle(id: string): void {
    const stored = this.items[this.places.get(id) ?? -1];
    if (stored?.kind !== "user") return;
    const local = this.items.find((it) => it.kind === "user" && it.isLocal && it.text === stored.text);
    if (local) this.replace(this.items.filter((it) => it !== local));
  }

  private finish(event: RunFinishedEvent): void {
    const outcome = event.outcome;
    this.usage = event.usage ?? this.usage;
    this.interrupts = outcome?.type === "interrupt" ? outcome.interrupts : [];
    this.phase = outcome?.type === "interrupt" ? "waiting" : "idle";
    this.wasCancelled = outcome?.type === "cancelled";
  }

  private call(event: CallEvent, now: number): void {
    const id = event.toolCallId;
    switch (event.type) {
      case "TOOL_CALL_START": {
        const message = event.parentMessageId ?? id;
        const call = { id, kind: "tool" as const, name: event.toolCallName, args: "", whole: false, message };
        return this.add({ ...call, began: now, ...lane(event) });
      }
      case "TOOL_CALL_ARGS":
        return this.change(id, (it) => (it.kind === "tool" ? { ...it, args: it.args + event.delta } : it));
      case "TOOL_CALL_END":
        return this.change(id, (it) => (it.kind === "tool" ? { ...it, whole: true } : it));
      case "TOOL_CALL_RESULT": {
        const failed = (event.metadata as { isError?: boolean } | undefined)?.isError === true;
        const result = { id: event.messageId, ...spoken(event.content), failed };
        return this.change(id, (it) => (it.kind === "tool" ? { ...it, whole: true, ended: now, result } : it));
      }
    }
  }

  private activity(id: string, content: Record<string, unknown>, where: { lane?: string }): void {
    this.activities.set(id, content);
    const list = todos(content);
    if (this.places.has(id)) this.change(id, (it) => (it.kind === "todo" ? { ...it, todos: list } : it));
    else this.add({ id, kind: "todo", todos: list, ...where });
  }

  /** Notices of the engine that concern the reader. */
  private remark(name: string, value: unknown): void {
    const said = value as Record<string, unknown>;
    const words: Record<string, () => string> = {
      "ostler:compact_boundary": () => "The conversation was summed up to make room.",
      "ostler:api_retry": () => `The model did not answer (${said.error}); trying again.`,
      "ostler:permission_denied": () => `${said.toolName} was not allowed: ${said.message}`,
      "ostler:model_fallback": () => `${said.message ?? `Going on with ${said.to}.`}`,
      "ostler:informational": () => String(said.message),
    };
    const text = words[name]?.();
    if (text !== undefined) this.add({ id: `note-${this.items.length}`, kind: "note", tone: "plain", text });
  }

  private add(item: Item): void {
    // A message that is sent again is the same message.
    const at = this.places.get(item.id);
    if (at !== undefined) {
      this.items[at] = item;
      return;
    }
    this.places.set(item.id, this.items.length);
    this.items.push(item);
  }

  private change(id: string, by: (item: Item) => Item): void {
    const at = this.places.get(id);
    const item = at === undefined ? undefined : this.items[at];
    if (at !== undefined && item) this.items[at] = by(item);
  }

  /** Inserts an earlier page at the start. */
  prepend(items: Item[], earlier: Earlier | undefined): void {
    this.earlier = earlier;
    this.replace([...items.filter((item) => !this.places.has(item.id)), ...this.items]);
  }

  private snapshot(items: Item[], earlier: Earlier | undefined): void {
    this.earlier = earlier;
    this.replace(items);
    const [first, before] = [items[0], this.before];
    const at = first && earlier && before ? before.places.get(first.id) : undefined;
    if (before && at !== undefined && at > 0) this.prepend(before.items.slice(0, at), before.earlier);
    this.before = undefined;
  }

  private replace(items: Item[]): void {
    this.items = items;
    this.places = new Map(items.map((item, index) => [item.id, index]));
  }
}

function lane(event: { subagentRunId?: string }): { lane?: string } {
  const found = laneOf(event.subagentRunId);
  return found === undefined ? {} : { lane: found };
}
