// The WebSocket: what is asked and decided in all sessions, and which runs begin and end. It comes back by itself, and
// whoever listens hears of that, because something may have happened in between.

import { batch } from "@preact/signals";
import { api } from "../api";
import { socketProtocols } from "../page-key";
import type { Approval, Run } from "../types";
import { approvals, ask, changed, connection, live, me, settle } from "./app";

/** Sent by the server at least this often; later than that, nobody is there. */
const SILENCE = 35_000;
/** The close code of a server that signed this browser out, or gave its user another role. */
const SIGNED_OUT = 4401;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 15_000;

type Told = Record<string, unknown> & { type: string };
type Heard = (told: Told) => void;

let socket: WebSocket | undefined;
let wanted = false;
let wait = FIRST_WAIT;
let retry: ReturnType<typeof setTimeout> | undefined;
let silence: ReturnType<typeof setTimeout> | undefined;
let beat: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<Heard>();

/** Hears what is told, and `{type: "hello"}` whenever the connection is there again. */
export function listen(heard: Heard): () => void {
  listeners.add(heard);
  return () => listeners.delete(heard);
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
    hear(JSON.parse(event.data as string) as Told);
  };
  opened.onclose = (event) => {
    if (socket !== opened) return;
    clearTimeout(silence);
    clearInterval(beat);
    socket = undefined;
    if (!wanted) return;
    connection.value = "lost";
    // A browser does not say why a WebSocket was refused. If it is because this browser is signed out, this does. After
    // another role was given, it says which.
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

/** Tries at once: the network is back, or somebody looks at the page again. */
export function hurry(): void {
  wait = FIRST_WAIT;
  if (wanted) connect();
}

function listenFor(opened: WebSocket): void {
  clearTimeout(silence);
  silence = setTimeout(() => opened.close(), SILENCE);
}

function hear(told: Told): void {
  batch(() => {
    switch (told.type) {
      case "hello":
        // What waits and what is at work is told again after this.
        approvals.value = [];
        live.value = new Map();
        connection.value = "open";
        break;
      case "permission_request":
      case "question_request":
        ask(asApproval(told));
        break;
      case "permission_resolved":
      case "question_resolved":
        settle((told.permissionId ?? told.questionId) as string);
        break;
      case "run":
        changed(told.run as Run);
        break;
    }
  });
  for (const heard of listeners) heard(told);
}

export function asApproval(told: Told): Approval {
  const approval = {
    ...told,
    id: told.permissionId as string,
    kind: told.type === "question_request" ? "question" : "permission",
    session: told.sessionId as string,
    run: told.runId as string,
  };
  for (const [name, value] of Object.entries(approval)) if (value === null) delete (approval as Told)[name];
  return approval as unknown as Approval;
}
