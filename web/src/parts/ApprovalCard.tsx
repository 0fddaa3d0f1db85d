import { useEffect, useRef } from "preact/hooks";
import { sessions } from "../state/app";
import { link } from "../state/route";
import type { Approval, Scope } from "../types";
import { ago } from "../text/say";
import { PlanCard } from "./PlanCard";
import { QuestionCard } from "./QuestionCard";
import { ToolInput } from "./ToolInput";
import { Why } from "./Why";
import { useDecide } from "./decide";
import { useDraft } from "./drafts";

/** Somebody is to decide about a call: what exactly would run, why it is asked, and what a yes would mean. */
export function ApprovalCard({ approval, isInline = false }: { approval: Approval; isInline?: boolean }) {
  if (approval.kind === "question") return <QuestionCard approval={approval} isInline={isInline} />;
  if (approval.toolName === "ExitPlanMode") return <PlanCard approval={approval} isInline={isInline} />;
  return <PermissionCard approval={approval} isInline={isInline} />;
}

function PermissionCard({ approval, isInline }: { approval: Approval; isInline: boolean }) {
  const [rule, choose] = useDraft(approval.id, "rule", approval.rules[0] ?? "");
  const [note, write] = useDraft<string | undefined>(approval.id, "note", undefined);
  const { isSent, decide } = useDecide(approval);
  const card = useRef<HTMLElement>(null);
  const allow = (scope: Scope) => decide({ approved: true, scope, ...(scope === "once" ? {} : { rule }) });
  const deny = (stop: boolean) => decide({ approved: false, stop, ...(note ? { note } : {}) });

  const press = (event: KeyboardEvent) => {
    // Keys are for the card itself, not for fields in it, and a no that was begun is no yes whatever is typed.
    if (event.target !== card.current || note !== undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { y: () => allow("once"), s: () => allow("session"), a: () => allow("always"), n: () => write("") }[event.key];
    if (!act || (approval.rules.length === 0 && (event.key === "s" || event.key === "a"))) return;
    event.preventDefault();
    void act();
  };

  return (
    <section
      ref={card} class="card approval" role="group" tabIndex={0} data-card={approval.id} aria-busy={isSent}
      aria-label={`May the agent do this? ${approval.summary}`} onKeyDown={press}
    >
      <CardHead approval={approval} isInline={isInline} title={`May the agent use ${approval.toolName}?`} />
      <ToolInput name={approval.toolName} input={approval.input} />
      <Why approval={approval} />
      {approval.rules.length > 0 && <Rules approval={approval} rule={rule} choose={choose} />}
      {note === undefined ? (
        <div class="actions">
          <button type="button" class="primary" disabled={isSent} onClick={() => allow("once")}>Allow once <kbd>y</kbd></button>
          {approval.rules.length > 0 && (
            <>
              <button type="button" disabled={isSent} onClick={() => allow("session")}>For this session <kbd>s</kbd></button>
              <button type="button" disabled={isSent} onClick={() => allow("always")}>Always <kbd>a</kbd></button>
            </>
          )}
          <button type="button" class="danger" disabled={isSent} onClick={() => write("")}>Deny… <kbd>n</kbd></button>
        </div>
      ) : (
        <Denial note={note} write={write} deny={(stop) => void deny(stop)} isSent={isSent} back={() => { write(undefined); card.current?.focus(); }} />
      )}
    </section>
  );
}

/** Which call asks, where it comes from and how long it has waited. */
export function CardHead({ approval, isInline, title }: { approval: Approval; isInline: boolean; title: string }) {
  const session = sessions.value?.find((it) => it.id === approval.session);
  return (
    <header>
      <h2>{title}</h2>
      <span class="hint">
        {!isInline && <a href={link("chat", approval.session)}>{session?.title || "Open its session"}</a>}
        {approval.agentId && " a subagent ·"} asked {ago(approval.asked)}
        {approval.expires && ` · a no at ${new Date(approval.expires).toLocaleTimeString()}`}
      </span>
    </header>
  );
}

/** The rule that "for this session" and "always" would grant: one that is offered, or one of one's own that covers the call. */
function Rules({ approval, rule, choose }: { approval: Approval; rule: string; choose: (rule: string) => void }) {
  const offered = `rules-${approval.id}`;
  return (
    <label class="rules">
      <span class="hint">“Session” and “always” grant this rule</span>
      <input type="text" value={rule} list={offered} spellcheck={false} autoComplete="off" onInput={(event) => choose(event.currentTarget.value)} />
      <datalist id={offered}>{approval.rules.map((it) => <option key={it} value={it} />)}</datalist>
    </label>
  );
}

interface DenialProps {
  label?: string;
  /** What is on the button that sends it. */
  yes?: string;
  note: string;
  write: (note: string) => void;
  deny: (stop: boolean) => void;
  isSent: boolean;
  back: () => void;
}

export function Denial({ label, yes = "Deny", note, write, deny, isSent, back }: DenialProps) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const send = (event: Event) => {
    event.preventDefault();
    deny(false);
  };
  return (
    <form class="denial" onSubmit={send} onKeyDown={(event) => { if (event.key === "Escape") { event.preventDefault(); back(); } }}>
      <label>
        {label ?? "Why not? The agent reads this (it may stay empty)."}
        <input type="text" ref={field} value={note} onInput={(event) => write(event.currentTarget.value)} />
      </label>
      <div class="actions">
        <button type="submit" class="danger" disabled={isSent}>{yes}</button>
        <button type="button" class="danger" disabled={isSent} onClick={() => deny(true)}>Deny and stop</button>
        <button type="button" onClick={back}>Back</button>
      </div>
    </form>
  );
}
