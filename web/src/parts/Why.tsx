import { visible } from "../text/hidden";
import type { Approval } from "../types";

/** The reason for an approval: in one sentence, and step by step. */
export function Why({ approval: { reason, why = [] } }: { approval: Approval }) {
  if (!reason && why.length === 0) return null;
  const sentence = <><b>Why it asks:</b> {visible(reason ?? why.at(-1)?.result ?? "")}</>;
  if (why.length === 0) return <p class="why">{sentence}</p>;
  return (
    <details class="why">
      <summary>{sentence}</summary>
      <ol class="chain" aria-label="How this was decided">
        {why.map((step, index) => (
          <li key={index} class={step.decided ? "decided" : ""}>
            <span>{visible(step.looked)}</span> <span class="hint">{visible(step.result)}</span>
          </li>
        ))}
      </ol>
    </details>
  );
}
