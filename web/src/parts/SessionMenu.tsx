import { useState } from "preact/hooks";
import { api } from "../api";
import { complain, keepSession, say, sessions } from "../state/app";
import { go, link } from "../state/route";
import type { Session } from "../types";
import { focused } from "./focus";

/** Actions on a whole session. */
export function SessionMenu({ session }: { session: Session }) {
  const [title, rename] = useState<string | undefined>(undefined);
  const attempt = (doing: () => Promise<void>) => void doing().catch(complain);
  const keep = (event: Event) => {
    event.preventDefault();
    const wanted = (title ?? "").trim();
    rename(undefined);
    if (wanted) attempt(async () => keepSession(await api.renameSession(session.id, wanted)));
  };
  const fork = async () => {
    const made = await api.fork(session.id, {});
    keepSession(made);
    go("chat", made.id);
    say("This is a copy. It continues separately; files are shared.");
  };
  const forget = async () => {
    if (!confirm(`Delete “${session.title || "this session"}”? Its runs are cancelled, and its conversation, checkpoints and changes are deleted for good.`)) return;
    await api.forgetSession(session.id);
    sessions.value = sessions.peek()?.filter((it) => it.id !== session.id);
    go("chat");
    say("Deleted.");
  };
  if (title !== undefined) {
    return (
      <form class="rename" onSubmit={keep}>
        <label>
          <span class="unseen">Title</span>
          <input type="text" value={title} maxLength={200} ref={focused} onInput={(event) => rename(event.currentTarget.value)}
            onKeyDown={(event) => { if (event.key === "Escape") { event.preventDefault(); rename(undefined); } }} />
        </label>
        <button type="submit" class="primary">Save title</button>
      </form>
    );
  }
  return (
    <details class="menu">
      <summary aria-label="Session menu">⋯</summary>
      <div>
        <a class="button" href={link("about", session.id)}>Changes and usage</a>
        <button type="button" onClick={() => rename(session.title)}>Rename</button>
        <button type="button" onClick={() => attempt(fork)}>Fork</button>
        <button type="button" onClick={() => attempt(() => exported(session))}>Export</button>
        <button type="button" class="danger" onClick={() => attempt(forget)}>Delete</button>
      </div>
    </details>
  );
}

/** The whole log as a file, one event per line. */
async function exported(session: Session): Promise<void> {
  const lines = (await api.log(session.id)).map((entry) => JSON.stringify(entry));
  const address = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "application/jsonl" }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = `${session.id}.jsonl`;
  anchor.click();
  URL.revokeObjectURL(address);
}
