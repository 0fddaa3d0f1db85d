// The WebSocket: approvals of all sessions, and which runs start and end. It reconnects by itself and
// notifies listeners of that, because they may have missed events.

import { batch } from "@preact/signals";
import { api } from "../api";
import { socketProtocols } from "../page-key";
import type { Approval, Run } from "../types";
import { approvals, ask, changed, connection, live, me, settle } from "./app";

/** The server sends at least this often; after that the connection counts as lost. */
const SILENCE = 35_000;
/** The close code of a server that signed this browser out, or gave its user another role. */
const SIGNED_OUT = 4401;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;

type ServerMessage = Record<string, unknown> & { type: string };
type Listener = (message: ServerMessage) => void;

let socket: WebSocket | undefined;
let wanted = false;
let wait = FIRST_WAIT;
let retry: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
let beat: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<Listener>();

/** Receives all messages, and `{type: "hello"}` whenever the connection is back. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function connect(): void {
  wanted = true;
  clearTimeout(retry);
  if (socket && socket.readyState <= WebSocket.OPEN) return;
  connection.value = connection.peek() === "lost" ? "lost" : "connecting";
  const opened = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/api/ws`, socketProtocols());
  socket = opened;
  opened.onopen = () => {
    wait = FIRST_WAIT;
    beat = setInterval(() => opened.send('{"type":"ping"}'), 20_000);
  };
  opened.onmessage = (event) => {
    listenFor(opened);
    receive(JSON.parse(event.data as string) as ServerMessage);
  };
  opened.onclose = (event) => {
    if (socket !== opened) return;
    clearTimeout(silence);
    clearInterval(beat);
    socket = undefined;
    if (!wanted) return;
    connection.value = "lost";
    // A browser does not report why a WebSocket was refused. This request shows whether the browser is signed out,
    // or which new role its user has.
    void api.me().then((it) => event.code === SIGNED_OUT && (me.value = it)).catch(() => {});
    retry = setTimeout(connect, wait);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  };
}

export function disconnect(): void {
  wanted = false;
  clearTimeout(retry);
  clearTimeout(silence);
  clearInterval(beat);
  const closing = socket;
  socket = undefined;
  closing?.close();
}

/** Reconnects at once: the network is back, or the page is visible again. */
export function hurry(): void {
  wait = FIRST_WAIT;
  if (wanted) connect();
}

function listenFor(opened: WebSocket): void {
  clearTimeout(silence);
  silence = setTimeout(() => opened.close(), SILENCE);
}

function receive(message: ServerMessage): void {
  batch(() => {
    switch (message.type) {
      case "hello":
        // The server sends pending approvals and active runs again after this.
        approvals.value = [];
        live.value = new Map();
        connection.value = "open";
        break;
      case "permission_request":
      case "question_request":
        ask(asApproval(message));
        break;
      case "permission_resolved":
      case "question_resolved":
        settle((message.permissionId ?? message.questionId) as string);
        break;
      case "run":
        changed(message.run as Run);
        break;
    }
  });
  for (const listener of listeners) listener(message);
}

export function asApproval(message: ServerMessage): Approval {
  const approval = {
    ...message,
    id: message.permissionId as string,
    kind: message.type === "question_request" ? "question" : "permission",
    session: message.sessionId as string,
    run: message.runId as string,
  };
  for (const [name, value] of Object.entries(approval)) if (value === null) delete (approval as ServerMessage)[name];
  return approval as unknown as Approval;
}
