import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Item, type UserItem, arranged } from "../agui/items";
import { api } from "../api";
import { ApprovalCard } from "../parts/ApprovalCard";
import { Composer } from "../parts/Composer";
import { SteadyEntry } from "../parts/Entry";
import { SignInCards } from "../parts/McpServers";
import { Meter } from "../parts/Meter";
import { SessionMenu } from "../parts/SessionMenu";
import { VirtualList } from "../parts/VirtualList";
import { approvals, complain, keepSession, sessions } from "../state/app";
import { Conversation, type First } from "../state/conversation";
import { go, link } from "../state/route";
import type { Session } from "../types";
import { Welcome } from "./Welcome";

export function Chat({ id }: { id?: string }) {
  return id ? <Open key={id} id={id} /> : <Fresh />;
}

/** An empty conversation: the first prompt creates the session. */
function Fresh() {
  const [mode, choose] = useState("default");
  const begin = async (text: string, attached: UserItem["attached"]) => {
    try {
      const session = await api.createSession({ title: titled(text), ...(mode === "default" ? {} : { permissionMode: mode }) });
      keepSession(session);
      first.set(session.id, { text, attached });
      go("chat", session.id);
    } catch (error) {
      sessionStorage.setItem("ostler-draft-new", text);
      complain(error);
    }
  };
  return (
    <main class="chat fresh" id="main">
      <Welcome onTry={(text) => void begin(text, [])} />
      <Mode mode={mode} choose={choose} />
      <Composer name="new" isWorking={false} onSay={(text, attached) => void begin(text, attached)} onStop={() => {}} />
    </main>
  );
}

const MODES: [string, string][] = [
  ["default", "Ask before every change"],
  ["plan", "Plan first, change nothing until you approve"],
  ["acceptEdits", "Edit files without approval, ask for the rest"],
];

function Mode({ mode, choose }: { mode: string; choose: (mode: string) => void }) {
  return (
    <label class="mode">
      <span class="unseen">Permission mode</span>
      <select value={mode} onChange={(event) => choose(event.currentTarget.value)}>
        {MODES.map(([name, words]) => <option key={name} value={name}>{words}</option>)}
      </select>
    </label>
  );
}

/** The first prompt of a session that was just created. */
const first = new Map<string, First>();

/** Sends an edited prompt in a fork. The session itself stays unchanged. */
async function retryIn(session: string, item: UserItem, text: string): Promise<void> {
  const before = await api.runOf(session, item.id);
  const fork = await api.fork(session, { before, title: titled(text) });
  keepSession(fork);
  first.set(fork.id, { text, attached: item.attached, isFork: true });
  go("chat", fork.id);
}

const titled = (text: string): string => text.split("\n")[0]!.slice(0, 80);

function Open({ id }: { id: string }) {
  const conversation = useMemo(() => new Conversation(id, first.get(id)), [id]);
  first.delete(id);
  useEffect(() => () => conversation.close(), [conversation]);
  const scroller = useRef<HTMLDivElement>(null);
  const version = conversation.version.value;
  const { items, lanes } = useMemo(() => arranged(conversation.thread.items), [conversation, version]);
  const here = useComputed(() => approvals.value.filter((it) => it.session === id)).value;
  const thread = conversation.thread;
  const loose = here.filter((it) => !it.toolUseId || !thread.has(it.toolUseId));
  const isWorking = conversation.isWorking;
  const stop = useCallback(() => void conversation.stop().catch(complain), [conversation]);
  const earlier = useCallback(async () => {
    const height = scroller.current?.scrollHeight ?? 0;
    await conversation.loadEarlier().catch(complain);
    // Keeps the scroll position: the page was inserted above it.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const element = scroller.current;
      if (element) element.scrollTop += element.scrollHeight - height;
    }));
  }, [conversation]);
  const retry = useCallback((item: UserItem, text: string) => void retryIn(id, item, text).catch(complain), [id]);
  const render = useCallback(
    (item: Item) => <SteadyEntry item={item} lanes={lanes} approvals={here} isLive={isWorking} onRetry={retry} />,
    [lanes, here, isWorking, retry],
  );

  const session = useSession(id);
  const failure = conversation.failure.value;
  if (failure) {
    return (
      <main class="chat" id="main">
        <div class="empty">
          <h1>This session cannot be shown</h1>
          <p>{failure.message}</p>
          <p><a href="#/chat">Start a new session</a>, or open <a href="#/sessions">all sessions</a>.</p>
        </div>
      </main>
    );
  }
  return (
    <main
      class="chat" id="main"
      onKeyDown={(event) => { if (event.key === "Escape" && isWorking && !event.defaultPrevented) stop(); }}
    >
      <header class="bar">
        <h1>{session?.title || "Session"}</h1>
        {session?.forkedFrom && <a class="hint" href={link("chat", session.forkedFrom.session)}>forked</a>}
        <Meter session={id} usage={conversation.usage.value} />
        {session && <SessionMenu session={session} />}
      </header>
      <div class="scroll" ref={scroller}>
        {conversation.isLoading.value && items.length === 0 && <p class="note" role="status">Loading the conversation…</p>}
        {thread.earlier && (
          <button type="button" class="quiet earlier" disabled={conversation.isLoadingEarlier.value} onClick={() => void earlier()}>
            Load earlier messages
          </button>
        )}
        <VirtualList items={items} keyOf={keyOf} render={render} scroller={scroller} label="Conversation" />
        <div class="foot">
          {loose.map((approval) => <Late key={approval.id}><ApprovalCard approval={approval} isInline /></Late>)}
          <SignInCards id={id} moment={isWorking} />
          <Status phase={here.length > 0 ? "waiting" : conversation.isLoading.value ? "loading" : thread.phase} conversation={conversation} />
        </div>
      </div>
      {conversation.queued.value.length > 0 && (
        <ul class="queue" aria-label="Queued prompts">
          {conversation.queued.value.map(({ run, text }) => (
            <li key={run}>
              <span>Next: {text}</span>
              <button type="button" class="quiet" onClick={() => void api.cancelRun(run).catch(complain)}>Withdraw</button>
            </li>
          ))}
        </ul>
      )}
      <Composer
        name={id} session={id} isWorking={isWorking} onStop={stop}
        onSay={(text, attached, how) => void conversation.say(text, attached, how).catch(complain)}
      />
    </main>
  );
}

/** Loads an open session, however old its last activity is. */
function useSession(id: string): Session | undefined {
  const found = useComputed(() => sessions.value?.find((it) => it.id === id)).value;
  const isMissing = found === undefined && sessions.value !== undefined;
  useEffect(() => {
    // If it cannot be loaded, the conversation shows the error.
    if (isMissing) void api.session(id).then(keepSession).catch(() => {});
  }, [id, isMissing]);
  return found;
}

/** A card whose call has not arrived yet usually gets its place a moment later, and need not be shown twice. */
function Late({ children }: { children: ComponentChildren }) {
  const [isDue, due] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => due(true), 500);
    return () => clearTimeout(timer);
  }, []);
  return isDue ? <>{children}</> : null;
}

const keyOf = (item: Item): string => item.id;

function Status({ phase, conversation }: { phase: string; conversation: Conversation }) {
  const { error, wasCancelled } = conversation.thread;
  const cutOff = conversation.cutOff.value;
  const words =
    phase === "running" ? "Working…"
    : phase === "waiting" ? "Waiting for your answer."
    : cutOff ? ""
    : error ? `The run failed: ${error.message}`
    : wasCancelled ? "Interrupted. Send another prompt to continue."
    : "";
  return (
    <p class={`status ${error && phase === "idle" ? "bad" : phase}`} role="status" tabIndex={-1} data-phase={phase}>
      {words}
      {cutOff && phase === "idle" && (
        <>
          The server ended while the agent was at work.{" "}
          <button type="button" onClick={() => void conversation.resume(cutOff).catch(complain)}>Resume</button>
        </>
      )}
    </p>
  );
}
