import { useSignalEffect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { Keys, isShown, press } from "../parts/Keys";
import { approvals, complain, connection, live, loadSessions, sessions, toast, waitingIn } from "../state/app";
import { connect, disconnect, hurry, listen } from "../state/news";
import { type Place, link, route } from "../state/route";
import { type Run, isOver } from "../types";
import { ago } from "../text/say";
import { About } from "./About";
import { Chat } from "./Chat";
import { Doctor } from "./Doctor";
import { Inbox } from "./Inbox";
import { Schedules } from "./Schedules";
import { Sessions } from "./Sessions";
import { Settings } from "./Settings";
import { Tasks } from "./Tasks";
import { Usage } from "./Usage";

const RECENT = 30;

/** The page of a signed-in user. */
export function Shell() {
  const [isOpen, open] = useState(false);
  useEffect(() => {
    connect();
    const unlisten = listen((message) => {
      if (message.type === "hello") void loadSessions().catch(complain);
      if (message.type === "run" && isNews(message.run as Run)) void loadSessions().catch(complain);
      if (message.type === "permission_request" || message.type === "question_request") notify(String(message.summary ?? "An agent needs your answer."));
    });
    const seen = () => document.visibilityState === "visible" && hurry();
    addEventListener("online", hurry);
    addEventListener("keydown", press);
    document.addEventListener("visibilitychange", seen);
    return () => {
      unlisten();
      disconnect();
      removeEventListener("online", hurry);
      removeEventListener("keydown", press);
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
  useSignalEffect(() => {
    const count = approvals.value.length;
    document.title = count > 0 ? `(${count}) Ostler` : "Ostler";
  });
  const { place, id } = route.value;
  useEffect(() => open(false), [place, id]);
  return (
    <div class={`shell ${isOpen ? "open" : ""}`}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.querySelector<HTMLElement>("h1, textarea")?.focus(); }}>Skip to the content</a>
      <header class="top">
        <button type="button" class="quiet" aria-expanded={isOpen} aria-controls="side" onClick={() => open(!isOpen)}>☰<span class="unseen"> Menu</span></button>
        <b>Ostler</b>
        <a href="#/inbox" class="badge" hidden={approvals.value.length === 0}>{approvals.value.length} waiting</a>
      </header>
      <Side place={place} {...(id ? { id } : {})} />
      <div class="content">
        {connection.value === "lost" && <p class="lost" role="alert">Connection lost. The server keeps working, and this page reconnects by itself.</p>}
        <View />
      </div>
      <div class="toast" role="status">{toast.value && <span class={toast.value.tone}>{toast.value.text}</span>}</div>
      <Keys />
    </div>
  );
}

/** Whether the list of sessions changed. */
function isNews(run: Run): boolean {
  return isOver(run.state) || sessions.peek()?.[0]?.id !== run.session;
}

function notify(text: string): void {
  if (!document.hidden || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification("An agent needs your answer", { body: text, tag: "ostler-waiting" });
  shown.onclick = () => {
    window.focus();
    location.hash = "#/inbox";
  };
}

function View() {
  const { place, id } = route.value;
  const given = id ? { id } : {};
  switch (place) {
    case "chat": return <Chat {...given} />;
    case "inbox": return <Inbox />;
    case "tasks": return <Tasks {...given} />;
    case "schedules": return <Schedules />;
    case "sessions": return <Sessions />;
    case "about": return id ? <About key={id} id={id} /> : <Sessions />;
    case "doctor": return <Doctor />;
    case "usage": return <Usage />;
    case "settings": return <Settings />;
  }
}

const LINKS: [Place, string][] = [["chat", "New session"], ["inbox", "Inbox"], ["tasks", "Tasks"], ["schedules", "Schedules"], ["sessions", "Sessions"], ["usage", "Usage"], ["settings", "Settings"]];

function Side({ place, id }: { place: Place; id?: string }) {
  return (
    <nav class="side" id="side" aria-label="Main">
      <ul>
        {LINKS.map(([to, words]) => (
          <li key={to}>
            <a href={link(to)} aria-current={place === to && !(to === "chat" && id) ? "page" : undefined}>
              {words}
              {to === "inbox" && approvals.value.length > 0 && <span class="badge">{approvals.value.length}</span>}
            </a>
          </li>
        ))}
      </ul>
      <h2 id="recent">Recent</h2>
      <ul class="recent" aria-labelledby="recent">
        {sessions.value?.slice(0, RECENT).map((session) => (
          <li key={session.id}>
            <a href={link("chat", session.id)} aria-current={place === "chat" && id === session.id ? "page" : undefined}>
              <span class="title">{session.title || "Untitled"}</span>
              {waitingIn.value.has(session.id) ? <span class="badge">{waitingIn.value.get(session.id)}<span class="unseen"> waiting</span></span>
                : live.value.has(session.id) ? <span class="at-work">running</span>
                : <span class="hint">{ago(session.lastActivity)}</span>}
            </a>
          </li>
        ))}
      </ul>
      <p class="foot">
        <span class={`connection ${connection.value}`} role="status">{{ open: "Connected", connecting: "Connecting…", lost: "Connection lost" }[connection.value]}</span>
        <button type="button" class="quiet" onClick={() => (isShown.value = true)}>Keys <kbd>?</kbd></button>
      </p>
    </nav>
  );
}
