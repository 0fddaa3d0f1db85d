// A conversation as it is shown: one list of items, those of subagents below the call that started them.

import type { ContentPart, Message, ToolCall } from "@ag-ui/core";

interface Common {
  id: string;
  /** The call whose subagent this belongs to. */
  lane?: string;
}

export interface UserItem extends Common {
  kind: "user";
  text: string;
  attached: Attachment[];
  /** Sent by this page and not yet confirmed by the server. */
  isLocal?: boolean;
}

export interface TextItem extends Common {
  kind: "text";
  text: string;
  done: boolean;
}

export interface ThinkingItem extends Common {
  kind: "thinking";
  text: string;
  done: boolean;
  encrypted?: string;
}

export interface ToolItem extends Common {
  kind: "tool";
  name: string;
  args: string;
  /** Whether all arguments have arrived. */
  whole: boolean;
  /** The message that the call is part of. */
  message: string;
  began?: number;
  ended?: number;
  result?: Result;
}

export interface TodoItem extends Common {
  kind: "todo";
  todos: Todo[];
}

export interface NoteItem extends Common {
  kind: "note";
  tone: "plain" | "bad";
  text: string;
}

export type Item = UserItem | TextItem | ThinkingItem | ToolItem | TodoItem | NoteItem;

/** An image, or another file, attached to a text. */
export interface Attachment {
  kind: "image" | "document";
  mime: string;
  /** base64 */
  data: string;
  name?: string;
}

export interface Result {
  id: string;
  text: string;
  attached: Attachment[];
  failed: boolean;
}

export interface Todo {
  content: string;
  status: string;
  activeForm?: string;
}

/** The text of content that is a string or a list of parts. */
export function spoken(content: string | ContentPart[] | undefined): { text: string; attached: Attachment[] } {
  if (content === undefined || typeof content === "string") return { text: content ?? "", attached: [] };
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
  const attached = content.flatMap((part): Attachment[] => {
    if ((part.type !== "image" && part.type !== "document") || part.source.type !== "data") return [];
    const name = part.metadata?.filename;
    const common = { kind: part.type, mime: part.source.mimeType, data: part.source.value };
    return [typeof name === "string" ? { ...common, name } : common];
  });
  return { text, attached };
}

/** The call that started a subagent: the server derives one id from the other. */
export function laneOf(subagentRunId: string | undefined): string | undefined {
  return subagentRunId?.replace(/^agent-/, "");
}

/** Items of a snapshot. */
/** The first message of an incomplete page: it is sent back to the server with every prompt. */
export interface Earlier {
  id: string;
  text: string;
  /** The number of the event before which the earlier page ends. */
  before: number;
}

export function earlierOf(messages: Message[]): Earlier | undefined {
  const first = messages[0];
  if (first?.role !== "system") return undefined;
  const before = (first as { metadata?: { earlier?: { before?: unknown } } }).metadata?.earlier?.before;
  return typeof before === "number" ? { id: first.id, text: String(first.content), before } : undefined;
}

export function fromMessages(messages: Message[]): Item[] {
  const items: Item[] = [];
  const calls = new Map<string, ToolItem>();
  for (const message of messages) {
    const lane = laneOf(message.subagentRunId);
    const common = lane === undefined ? { id: message.id } : { id: message.id, lane };
    switch (message.role) {
      case "user":
        items.push({ ...common, kind: "user", ...spoken(message.content) });
        break;
      case "reasoning":
        items.push({ ...common, kind: "thinking", text: message.content, done: true, ...encrypted(message) });
        break;
      case "assistant":
        if (message.content) items.push({ ...common, kind: "text", text: message.content, done: true });
        if ((message as { metadata?: { cutOff?: boolean } }).metadata?.cutOff) {
          items.push({ id: `${message.id}-note`, kind: "note", tone: "bad", text: "The answer was cut off here." });
        }
        for (const call of message.toolCalls ?? []) {
          const item = fromCall(call, message.id, lane);
          calls.set(call.id, item);
          items.push(item);
        }
        break;
      case "tool": {
        const call = calls.get(message.toolCallId);
        const result = { id: message.id, ...spoken(message.content), failed: message.error !== undefined };
        if (call) call.result = result;
        break;
      }
      case "activity":
        if (message.activityType === TODOS) items.push({ ...common, kind: "todo", todos: todos(message.content) });
        break;
    }
  }
  return items;
}

export const TODOS = "todos";

export function todos(content: Record<string, unknown>): Todo[] {
  return Array.isArray(content.todos) ? (content.todos as Todo[]) : [];
}

function encrypted(message: { encryptedValue?: string }): { encrypted?: string } {
  return message.encryptedValue === undefined ? {} : { encrypted: message.encryptedValue };
}

function fromCall(call: ToolCall, message: string, lane: string | undefined): ToolItem {
  const item: ToolItem = {
    id: call.id,
    kind: "tool",
    name: call.function.name,
    args: call.function.arguments,
    whole: true,
    message,
  };
  if (lane !== undefined) item.lane = lane;
  return item;
}

/** Items of the first level, and those below calls. */
export function arranged(all: Item[]): { items: Item[]; lanes: Map<string, Item[]> } {
  const lanes = new Map<string, Item[]>();
  for (const item of all) {
    if (item.lane === undefined) continue;
    const lane = lanes.get(item.lane);
    if (lane) lane.push(item);
    else lanes.set(item.lane, [item]);
  }
  return { items: lanes.size === 0 ? all.slice() : all.filter((item) => item.lane === undefined), lanes };
}

/** The conversation in the protocol's format, without local items. */
export function toMessages(items: Item[]): Message[] {
  const messages: Message[] = [];
  const byId = new Map<string, Message & { role: "assistant" }>();
  for (const item of items) {
    const lane = item.lane === undefined ? {} : { subagentRunId: `agent-${item.lane}` };
    if (item.kind === "user" && !item.isLocal) {
      messages.push({ id: item.id, role: "user", content: userContent(item) });
    } else if (item.kind === "text") {
      const message = { id: item.id, role: "assistant" as const, content: item.text, ...lane };
      byId.set(item.id, message);
      messages.push(message);
    } else if (item.kind === "thinking") {
      const value = item.encrypted === undefined ? {} : { encryptedValue: item.encrypted };
      messages.push({ id: item.id, role: "reasoning", content: item.text, ...value, ...lane });
    } else if (item.kind === "tool") {
      const call = { id: item.id, type: "function" as const, function: { name: item.name, arguments: item.args } };
      const known = byId.get(item.message);
      if (known) known.toolCalls = [...(known.toolCalls ?? []), call];
      else {
        const message = { id: item.message, role: "assistant" as const, toolCalls: [call], ...lane };
        byId.set(item.message, message);
        messages.push(message);
      }
      if (item.result) messages.push(toolMessage(item.id, item.result, lane));
    }
  }
  return messages;
}

function toolMessage(toolCallId: string, result: Result, lane: { subagentRunId?: string }): Message {
  const error = result.failed ? { error: result.text } : {};
  return { id: result.id, role: "tool", toolCallId, content: result.text, ...error, ...lane };
}

export function userContent(item: { text: string; attached: Attachment[] }): string | ContentPart[] {
  if (item.attached.length === 0) return item.text;
  const parts = item.attached.map(({ kind, mime, data, name }) => ({
    type: kind,
    source: { type: "data" as const, value: data, mimeType: mime },
    ...(name === undefined ? {} : { metadata: { filename: name } }),
  }));
  return [{ type: "text", text: item.text }, ...parts];
}
