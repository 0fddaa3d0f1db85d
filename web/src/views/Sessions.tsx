import { useState } from "preact/hooks";
import { SessionMenu } from "../parts/SessionMenu";
import { live, sessions, waitingIn } from "../state/app";
import { link } from "../state/route";
import { ago } from "../text/say";

export function Sessions() {
  const [search, look] = useState("");
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = sessions.value?.filter((session) => {
    const text = `${session.title} ${session.setup.cwd ?? ""} ${session.owner}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return (
    <main class="page" id="main">
      <header class="bar"><h1>Sessions</h1></header>
      <label class="search">
        Search
        <input type="search" value={search} placeholder="Title, folder or owner" onInput={(event) => look(event.currentTarget.value)} />
      </label>
      {found === undefined && <p class="note" role="status">Loading…</p>}
      {found?.length === 0 && (
        <div class="empty">
          <h2>{search ? "No session is called that" : "There are no sessions yet"}</h2>
          <p>{search ? <button type="button" onClick={() => look("")}>Show all</button> : <a href="#/chat">Begin the first</a>}</p>
        </div>
      )}
      <ul class="rows">
        {found?.map((session) => (
          <li key={session.id}>
            <a href={link("chat", session.id)}>
              <b>{session.title || "Without a title"}</b>
              <span class="hint">{ago(session.created)}{session.setup.task && " · task"}{session.setup.model && ` · ${session.setup.model}`}</span>
            </a>
            {waitingIn.value.has(session.id) && <span class="badge">waits</span>}
            {live.value.has(session.id) && <span class="badge quiet">at work</span>}
            <SessionMenu session={session} />
          </li>
        ))}
      </ul>
    </main>
  );
}
