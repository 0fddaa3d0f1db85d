import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import type { Item, UserItem } from "../agui/items";
import type { Approval } from "../types";
import { Attached } from "./Attached";
import { Copy } from "./Copy";
import { focused } from "./focus";
import { Markdown } from "./Markdown";
import { Todos } from "./Todos";
import { ToolCard } from "./ToolCard";

export interface EntryProps {
  item: Item;
  /** The work of subagents, by the call that started them. */
  lanes: ReadonlyMap<string, Item[]>;
  approvals: Approval[];
  isLive: boolean;
  onRetry?: (item: UserItem, text: string) => void;
}

/** One item of a conversation. */
export function Entry({ item, lanes, approvals, isLive, onRetry }: EntryProps) {
  switch (item.kind) {
    case "user":
      return <Said item={item} {...(onRetry && !isLive && !item.isLocal ? { onRetry } : {})} />;
    case "text":
      return (
        <article class="text" aria-label="Agent">
          <Markdown text={item.text} done={item.done} />
          {item.done && (
            <div class="actions">
              <Copy text={item.text} label="Copy this answer" />
            </div>
          )}
        </article>
      );
    case "thinking":
      return (
        <details class="thinking">
          <summary>{item.done ? "Thought" : "Thinking…"}</summary>
          <Markdown text={item.text} done={item.done} />
        </details>
      );
    case "tool":
      return (
        <ToolCard item={item} children={lanes.get(item.id)} lanes={lanes} approvals={approvals} isLive={isLive} />
      );
    case "todo":
      return <Todos todos={item.todos} />;
    case "note":
      return <p class={`note ${item.tone}`}>{item.text}</p>;
  }
}

function Said({ item, onRetry }: { item: UserItem; onRetry?: (item: UserItem, text: string) => void }) {
  const [draft, edit] = useState<string | undefined>(undefined);
  if (draft !== undefined) {
    const send = (event: Event) => {
      event.preventDefault();
      edit(undefined);
      if (draft.trim()) onRetry?.(item, draft);
    };
    return (
      <form class="said editing" onSubmit={send}>
        <label>
          <span class="unseen">Send edited prompt</span>
          <textarea value={draft} rows={3} ref={focused} onInput={(event) => edit(event.currentTarget.value)} />
        </label>
        <p class="hint">A copy of the conversation continues from here. This conversation and the files stay unchanged.</p>
        <div class="actions">
          <button type="submit" class="primary">Send edited prompt</button>
          <button type="button" onClick={() => edit(undefined)}>Cancel</button>
        </div>
      </form>
    );
  }
  return (
    <article class="said" aria-label="You">
      <p>{item.text}</p>
      <Attached list={item.attached} />
      <div class="actions">
        <Copy text={item.text} label="Copy this prompt" />
        {onRetry && (
          <button type="button" class="quiet" onClick={() => edit(item.text)}>Edit</button>
        )}
      </div>
    </article>
  );
}

/** Drawn again only if its own item or its approval changes. */
export const SteadyEntry = memo(Entry, (before, after) => {
  if (before.item !== after.item || before.isLive !== after.isLive) return false;
  if (before.approvals !== after.approvals) return false;
  return before.lanes.get(before.item.id) === after.lanes.get(after.item.id);
});
