import { useEffect, useRef, useState } from "preact/hooks";
import { me, sessions } from "../state/app";
import { link } from "../state/route";
import type { Approval, Scope } from "../types";
import { listed } from "../text/arguments";
import { visible } from "../text/hidden";
import { ago } from "../text/say";
import { isLong } from "./Clip";
import { PlanCard } from "./PlanCard";
import { QuestionCard } from "./QuestionCard";
import { ToolInput } from "./ToolInput";
import { Why } from "./Why";
import { useDecide } from "./decide";
import { useDraft } from "./drafts";

/** A pending approval: exactly what would run, the reason, and what allowing it means. */
export function ApprovalCard({ approval, isInline = false }: { approval: Approval; isInline?: boolean }) {
  if (approval.kind === "question") return <QuestionCard approval={approval} isInline={isInline} />;
  if (approval.toolName === "ExitPlanMode") return <PlanCard approval={approval} isInline={isInline} />;
  return <PermissionCard approval={approval} isInline={isInline} />;
}

function PermissionCard({ approval, isInline }: { approval: Approval; isInline: boolean }) {
  const [rule, choose] = useDraft(approval.id, "rule", approval.rules[0] ?? "");
  const [note, write] = useDraft<string | undefined>(approval.id, "note", undefined);
  const [whole, confirm] = useState<Scope | undefined>(undefined);
  const [unattended, alsoUnattended] = useState(false);
  const [isRead, read] = useState(!isLong(listed(approval.toolName, approval.input)));
  const { isSent, decide } = useDecide(approval);
  const card = useRef<HTMLElement>(null);
  const offers = approval.offers ?? [];
  // Which hosts all sessions of a folder reach is for administrators.
  const mayAlways = offers.length > 0 && !(isHost(approval) && me.value?.role === "member");
  const isWhole = offers.find((it) => it.label === rule)?.wholeTool ?? false;
  const allow = (scope: Scope) => {
    if (!isRead) return;
    // A rule for a whole tool is granted by a second click that says what it covers.
    if (scope !== "once" && isWhole && whole === undefined) return confirm(scope);
    const granted = scope === "once" ? {} : { rule, wholeTool: isWhole, unattended };
    return decide({ approved: true, scope, ...granted });
  };
  const deny = (stop: boolean) => decide({ approved: false, stop, ...(note ? { note } : {}) });

  const press = (event: KeyboardEvent) => {
    // Keys are for the card itself, not for its fields; while a denial is being written, no key allows.
    const isBusy = note !== undefined || whole !== undefined;
    // A key that is held down answers one card, not the ones after it.
    if (event.repeat || event.target !== card.current || isBusy || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { y: () => allow("once"), s: () => allow("session"), a: () => allow("always"), n: () => write("") }[event.key];
    if (!act || (offers.length === 0 && event.key === "s") || (!mayAlways && event.key === "a")) return;
    event.preventDefault();
    void act();
  };

  return (
    <section
      ref={card} class="card approval" role="group" tabIndex={0} data-card={approval.id} aria-busy={isSent}
      aria-label={`May the agent do this? ${approval.summary}`} onKeyDown={press}
    >
      <CardHead approval={approval} isInline={isInline} title={title(approval)} />
      {isHost(approval)
        ? <p>{visible(approval.description ?? "A program in the sandbox wants to connect to it.")}</p>
        : <ToolInput name={approval.toolName} input={approval.input} onOpen={() => read(true)} />}
      {approval.redacted && <p class="hint">Secrets are not shown here. The call runs with them.</p>}
      <Why approval={approval} />
      {offers.length > 0 && whole === undefined && <Rules approval={approval} rule={rule} choose={choose} />}
      {approval.origin?.unattended && offers.length > 0 && (
        <label class="hint">
          <input type="checkbox" checked={unattended} onChange={(event) => alsoUnattended(event.currentTarget.checked)} />
          {" "}A hook or a schedule started this run. The rule also answers for such runs, whose prompts others may have written.
        </label>
      )}
      {!isRead && <p class="hint">Show all lines before you allow this.</p>}
      {note !== undefined ? (
        <Denial note={note} write={write} deny={(stop) => void deny(stop)} isSent={isSent} back={() => { write(undefined); card.current?.focus(); }} />
      ) : whole !== undefined ? (
        <WholeTool approval={approval} rule={rule} scope={whole} isSent={isSent} grant={() => void allow(whole)} back={() => confirm(undefined)} />
      ) : (
        <div class="actions">
          <button type="button" class="primary" disabled={isSent || !isRead} onClick={() => allow("once")}>Allow once <kbd>y</kbd></button>
          {offers.length > 0 && (
            <>
              <button type="button" disabled={isSent || !isRead} onClick={() => allow("session")}>Allow for this session <kbd>s</kbd></button>
              {mayAlways && <button type="button" disabled={isSent || !isRead} onClick={() => allow("always")}>Always allow in this folder <kbd>a</kbd></button>}
            </>
          )}
          <button type="button" class="danger" disabled={isSent} onClick={() => write("")}>Deny… <kbd>n</kbd></button>
        </div>
      )}
    </section>
  );
}

/** Whether a program in the sandbox asks to reach a host. */
function isHost(approval: Approval): boolean {
  return approval.toolName === "SandboxNetworkAccess";
}

function title(approval: Approval): string {
  if (!isHost(approval)) return `May the agent use ${approval.toolName}?`;
  const { host } = approval.input as { host?: unknown };
  return `Connect to ${visible(String(host))}?`;
}

interface WholeToolProps {
  approval: Approval;
  rule: string;
  scope: Scope;
  isSent: boolean;
  grant: () => void;
  back: () => void;
}

/** The second question before a rule is granted that allows every use of a tool. */
function WholeTool({ approval, rule, scope, isSent, grant, back }: WholeToolProps) {
  const where = scope === "session" ? "in this session" : `in all your sessions in ${visible(approval.origin?.folder ?? "this folder")}`;
  return (
    <div class="whole" role="alertdialog" aria-label="Allow every use of this tool?">
      <p><b><code>{visible(rule)}</code> allows every use of the tool</b>, with any arguments, {where}, without asking again.</p>
      <div class="actions">
        <button type="button" class="danger" disabled={isSent} onClick={grant}>Allow every use</button>
        <button type="button" onClick={back}>Back</button>
      </div>
    </div>
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
        {approval.expires && ` · expires at ${new Date(approval.expires).toLocaleTimeString()}`}
      </span>
    </header>
  );
}

/** The rule that "for this session" and "always" would grant: one of those that are offered. */
function Rules({ approval, rule, choose }: { approval: Approval; rule: string; choose: (rule: string) => void }) {
  const folder = approval.origin?.folder;
  return (
    <label class="rules">
      <span class="hint">
        “Session” and “always” grant this rule{folder ? `; “always” applies in ${visible(folder)}` : ""}
      </span>
      <select value={rule} onChange={(event) => choose(event.currentTarget.value)}>
        {approval.rules.map((it) => <option key={it} value={it}>{visible(it)}</option>)}
      </select>
    </label>
  );
}

interface DenialProps {
  label?: string;
  /** The label of the button that sends it. */
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
        {label ?? "Reason for the agent (optional)"}
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
