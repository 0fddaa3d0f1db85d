import { useEffect, useMemo, useState } from "preact/hooks";
import { arranged } from "../agui/items";
import { approvals } from "../state/app";
import { Conversation } from "../state/conversation";
import { SteadyEntry } from "./Entry";

/** How many of the last steps are shown. The whole conversation is a click away. */
const LAST = 40;

/** The steps of a task, live. */
export function TaskLog({ session, name }: { session: string; name: string }) {
  const [isOpen, open] = useState(false);
  return (
    <details class="log" onToggle={(event) => open(event.currentTarget.open)}>
      <summary>Log</summary>
      {isOpen && <Live session={session} name={name} />}
    </details>
  );
}

function Live({ session, name }: { session: string; name: string }) {
  const conversation = useMemo(() => new Conversation(session), [session]);
  useEffect(() => () => conversation.close(), [conversation]);
  const version = conversation.version.value;
  const { items, lanes } = useMemo(() => arranged(conversation.thread.items), [conversation, version]);
  const here = approvals.value.filter((it) => it.session === session);
  return (
    <div role="log" aria-label={`Log of ${name}`}>
      {conversation.isLoading.value && items.length === 0 && <p class="note" role="status">Loading…</p>}
      {items.slice(-LAST).map((item) => (
        <div key={item.id} class="row"><SteadyEntry item={item} lanes={lanes} approvals={here} isLive={conversation.isWorking} /></div>
      ))}
    </div>
  );
}
