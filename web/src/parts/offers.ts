// Completions for the word at the cursor: commands after a slash, files after an @.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api";

const MOST = 8;

export interface Offer {
  text: string;
  hint?: string;
}

export interface Typed {
  kind: "command" | "file";
  word: string;
  /** Where the word begins, its sign included. */
  from: number;
}

/** The word before the cursor, if it is one that can be completed. */
export function typed(text: string, cursor: number): Typed | undefined {
  const before = text.slice(0, cursor);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: "command", word: command[1]!, from: 0 };
  const file = /(?:^|\s)@(\S*)$/.exec(before);
  return file ? { kind: "file", word: file[1]!, from: before.length - file[1]!.length - 1 } : undefined;
}

/** The text with a completion in place of the word, and the new position of the cursor. */
export function taken(text: string, { from, word }: Typed, offer: Offer): { text: string; cursor: number } {
  const rest = text.slice(from + 1 + word.length).replace(/^ /, "");
  // A folder is completed further; everything else is complete.
  const put = offer.text.endsWith("/") ? offer.text : `${offer.text} `;
  return { text: text.slice(0, from) + put + rest, cursor: from + put.length };
}

export function useOffers(session: string | undefined, now: Typed | undefined): Offer[] {
  const [commands, keep] = useState<Offer[] | undefined>(undefined);
  const [files, found] = useState<Offer[]>([]);
  const wantsCommands = now?.kind === "command" && session !== undefined && commands === undefined;
  useEffect(() => {
    // A failed lookup offers nothing, without an error message. The same below.
    if (wantsCommands) void api.commands(session).then(keep).catch(() => keep([]));
  }, [wantsCommands, session]);
  const path = now?.kind === "file" ? now.word : undefined;
  useEffect(() => {
    if (path === undefined || session === undefined) return found([]);
    const asking = new AbortController();
    const show = ({ items }: { items: { path: string }[] }) => found(items.map((it) => ({ text: `@${it.path}` })));
    void api.files(session, path, asking.signal).then(show).catch(() => {});
    return () => asking.abort();
  }, [path, session]);
  if (now?.kind === "command") return (commands ?? []).filter((it) => it.text.startsWith(`/${now.word}`)).slice(0, MOST);
  return now ? files.slice(0, MOST) : [];
}
