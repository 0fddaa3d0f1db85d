import { useRef } from "preact/hooks";
import type { Approval } from "../types";
import { str } from "../text/summary";
import { CardHead, Denial } from "./ApprovalCard";
import { Markdown } from "./Markdown";
import { useDecide } from "./decide";
import { useDraft } from "./drafts";

/** A plan that needs approval. A denial sends the agent back to planning, with the reason. */
export function PlanCard({ approval, isInline }: { approval: Approval; isInline: boolean }) {
  const [note, write] = useDraft<string | undefined>(approval.id, "note", undefined);
  const { isSent, decide } = useDecide(approval);
  const card = useRef<HTMLElement>(null);
  const go = () => decide({ approved: true, scope: "once" });
  const press = (event: KeyboardEvent) => {
    if (event.repeat || event.target !== card.current || note !== undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { y: go, n: () => write("") }[event.key];
    if (!act) return;
    event.preventDefault();
    void act();
  };
  return (
    <section
      ref={card} class="card approval plan" role="group" tabIndex={0} data-card={approval.id} aria-busy={isSent}
      aria-label="Approve this plan?" onKeyDown={press}
    >
      <CardHead approval={approval} isInline={isInline} title="Approve this plan?" />
      <Markdown text={str(approval.input.plan)} done />
      {note === undefined ? (
        <div class="actions">
          <button type="button" class="primary" disabled={isSent} onClick={() => void go()}>Approve plan <kbd>y</kbd></button>
          <button type="button" disabled={isSent} onClick={() => write("")}>Keep planning… <kbd>n</kbd></button>
        </div>
      ) : (
        <Denial
          label="What should be different? The agent reads this." yes="Keep planning" note={note} write={write} isSent={isSent}
          deny={(stop) => void decide({ approved: false, stop, ...(note ? { note } : {}) })}
          back={() => { write(undefined); card.current?.focus(); }}
        />
      )}
    </section>
  );
}
