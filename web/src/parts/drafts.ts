// Unfinished answers. Cards move on the page while the conversation grows, and are drawn again then;
// their text is kept.

import { useState } from "preact/hooks";
import { approvals } from "../state/app";

const drafts = new Map<string, unknown>();

/** Like `useState`, kept for as long as the approval waits. */
export function useDraft<T>(approval: string, field: string, initial: T): [T, (value: T) => void] {
  const key = `${approval} ${field}`;
  const [value, set] = useState<T>(() => (drafts.has(key) ? (drafts.get(key) as T) : initial));
  return [
    value,
    (next) => {
      drafts.set(key, next);
      set(next);
    },
  ];
}

approvals.subscribe((waiting) => {
  const ids = new Set(waiting.map((it) => it.id));
  for (const key of drafts.keys()) if (!ids.has(key.split(" ")[0]!)) drafts.delete(key);
});
