// The state of the whole page: user, sessions, pending approvals, connection.

import { batch, computed, effect, signal } from "@preact/signals";
import { api } from "../api";
import { keepPageKey, pageKey } from "../page-key";
import type { Approval, Me, Run, Session } from "../types";
import { isOver } from "../types";

/** `undefined` until known; `null` if this browser must sign in first. */
export const me = signal<Me | null | undefined>(undefined);
export const sessions = signal<Session[] | undefined>(undefined);
/** Pending approvals, oldest first. */
export const approvals = signal<Approval[]>([]);
/** The active runs by session; the newest of each. */
export const live = signal<ReadonlyMap<string, Run>>(new Map());

export type Connection = "connecting" | "open" | "lost";
export const connection = signal<Connection>("connecting");

/** Short messages at the bottom of the page that disappear by themselves. */
export const toast = signal<{ text: string; tone: "plain" | "bad" } | undefined>(undefined);
let toastTimer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, tone: "plain" | "bad" = "plain"): void {
  toast.value = { text, tone };
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.value = undefined), 6000);
}

/** Shows the error of a request. */
export function complain(error: unknown): void {
  const said = error as { message?: string; hint?: string };
  say([said.message ?? String(error), said.hint].filter(Boolean).join(" "), "bad");
}

export const waitingIn = computed(() => {
  const counts = new Map<string, number>();
  for (const approval of approvals.value) counts.set(approval.session, (counts.get(approval.session) ?? 0) + 1);
  return counts;
});

export function ask(approval: Approval): void {
  const others = approvals.peek().filter((known) => known.id !== approval.id);
  approvals.value = [...others, approval].sort((a, b) => a.asked - b.asked);
}

export function settle(id: string): void {
  approvals.value = approvals.peek().filter((known) => known.id !== id);
}

/** A run has changed its state. */
export function changed(run: Run): void {
  const known = live.peek().get(run.session);
  if (isOver(run.state) && known?.id !== run.id) return;
  const next = new Map(live.peek());
  if (isOver(run.state)) next.delete(run.session);
  else next.set(run.session, run);
  live.value = next;
}

/** The recently active sessions; others are loaded when they are opened or searched. */
export async function loadSessions(): Promise<void> {
  const { items } = await api.sessions({ limit: 100 });
  const ids = new Set(items.map((it) => it.id));
  const older = (sessions.peek() ?? []).filter((it) => !ids.has(it.id) && it.lastActivity < (items.at(-1)?.lastActivity ?? 0));
  sessions.value = inOrder([...items, ...older]);
}

export function keepSession(session: Session): void {
  const others = (sessions.peek() ?? []).filter((known) => known.id !== session.id);
  sessions.value = inOrder([session, ...others]);
}

function inOrder(list: Session[]): Session[] {
  return list.sort((a, b) => b.lastActivity - a.lastActivity);
}

/** Whether this browser is signed in, as far as it knows. Scripts cannot see the cookie itself. */
export function hasEntered(): boolean {
  return pageKey() !== null;
}

effect(() => {
  if (me.value === null) keepPageKey(null);
});

/** Signed out: clears everything, so that the next user does not see it. */
export function forget(): void {
  batch(() => {
    me.value = null;
    sessions.value = undefined;
    approvals.value = [];
    live.value = new Map();
  });
}
