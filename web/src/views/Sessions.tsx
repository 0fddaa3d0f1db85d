import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { SessionMenu } from "../parts/SessionMenu";
import { complain, live, sessions, waitingIn } from "../state/app";
import { link } from "../state/route";
import type { Part, Session } from "../types";
import { ago, dollars, tokens } from "../text/say";

const STEP = 50;

export function Sessions() {
  const [search, look] = useState("");
  const { found, more } = useFound(search);
  return (
    <main class="page" id="main">
      <header class="bar"><h1>Sessions</h1></header>
      <label class="search">
        Search
        <input type="search" value={search} placeholder="Title or text" onInput={(event) => look(event.currentTarget.value)} />
      </label>
      {found === undefined && <p class="note" role="status">Loading…</p>}
      {found?.items.length === 0 && (
        <div class="empty">
          <h2>{search ? "No matching sessions" : "No sessions yet"}</h2>
          <p>{search ? <button type="button" onClick={() => look("")}>Show all</button> : <a href="#/chat">Start a session</a>}</p>
        </div>
      )}
      <ul class="rows">
        {found?.items.map((session) => <Row key={session.id} session={session} />)}
      </ul>
      {found?.next && <p><button type="button" onClick={more}>Show more</button></p>}
    </main>
  );
}

function Row({ session }: { session: Session }) {
  const about = [
    ago(session.lastActivity), session.runs === 1 ? "1 run" : `${session.runs} runs`,
    session.setup.task && "task", session.forkedFrom && "fork", session.setup.model,
  ];
  const { input, output, cacheRead, cacheCreation } = session.tokens;
  const all = input + output + cacheRead + cacheCreation;
  return (
    <li>
      <a href={link("chat", session.id)}>
        <b>{session.title || "Untitled"}</b>
        <span class="hint">{about.filter(Boolean).join(" · ")}</span>
      </a>
      {waitingIn.value.has(session.id) ? <span class="badge waiting">waiting</span> : live.value.has(session.id) && <span class="badge quiet">running</span>}
      {all > 0 && <span class="cost" title={`${tokens(all)} tokens`}>{dollars(session.costUsd)}</span>}
      <SessionMenu session={session} />
    </li>
  );
}

/** The matching sessions, in pages; reloaded when one is renamed, deleted or active. */
function useFound(search: string): { found: Part<Session> | undefined; more: () => void } {
  const [found, set] = useState<Part<Session> | undefined>(undefined);
  const [age, again] = useState(0);
  const isFirst = useRef(true);
  useSignalEffect(() => {
    void sessions.value;
    if (!isFirst.current) again((count) => count + 1);
    isFirst.current = false;
  });
  useEffect(() => {
    const asking = new AbortController();
    const fail = (error: unknown) => { if (!asking.signal.aborted) complain(error); };
    void api.sessions({ q: search.trim(), limit: STEP }, asking.signal).then(set).catch(fail);
    return () => asking.abort();
  }, [search, age]);
  const more = () => {
    if (!found?.next) return;
    const add = (part: Part<Session>) => set({ ...part, items: [...found.items, ...part.items] });
    void api.sessions({ q: search.trim(), limit: STEP, after: found.next }).then(add).catch(complain);
  };
  return { found, more };
}
