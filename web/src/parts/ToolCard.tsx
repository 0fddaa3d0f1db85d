import { useEffect, useState } from "preact/hooks";
import type { Item, ToolItem } from "../agui/items";
import type { Approval } from "../types";
import { lasted } from "../text/say";
import { parsed, summary } from "../text/summary";
import { ApprovalCard } from "./ApprovalCard";
import { Attached } from "./Attached";
import { Clip } from "./Clip";
import { Copy } from "./Copy";
import { Entry } from "./Entry";
import { Todos } from "./Todos";
import { ToolInput } from "./ToolInput";

interface Props {
  item: ToolItem;
  /** What the subagent of this call did. */
  children?: Item[];
  lanes: ReadonlyMap<string, Item[]>;
  approvals: Approval[];
  isLive: boolean;
}

export function ToolCard({ item, children = [], lanes, approvals, isLive }: Props) {
  const approval = approvals.find((it) => it.toolUseId === item.id);
  const input = parsed(item.args);
  const state = approval ? "asks" : item.result ? (item.result.failed ? "failed" : "done") : isLive ? "runs" : "ended";
  if (approval) return <ApprovalCard approval={approval} isInline />;
  return (
    <details class={`tool ${state}`} data-tool={item.name} open={children.length > 0 && state === "runs"}>
      <summary>
        <span class="dot" aria-hidden="true" />
        <b>{item.name}</b>
        <span class="summary">{summary(item.name, input)}</span>
        <span class="state">{WORDS[state]}</span>
        <Elapsed item={item} isLive={state === "runs"} />
      </summary>
      <div class="body">
        {item.name === "TodoWrite" && input ? <Todos todos={(input.todos ?? []) as never} /> : null}
        {item.name !== "TodoWrite" && input && <ToolInput name={item.name} input={input} />}
        {children.length > 0 && (
          <div class="lane" role="group" aria-label={`What the subagent does: ${summary(item.name, input)}`}>
            {children.map((child) => (
              <Entry key={child.id} item={child} lanes={lanes} approvals={approvals} isLive={isLive} />
            ))}
          </div>
        )}
        {item.result && <Output item={item} />}
      </div>
    </details>
  );
}

const WORDS = { asks: "asks", failed: "failed", done: "", runs: "running", ended: "no result" };

function Output({ item }: { item: ToolItem }) {
  const result = item.result!;
  return (
    <div class={item.name === "Bash" ? "output terminal" : "output"}>
      {result.text !== "" && (
        <>
          <div class="heading">
            <span>{result.failed ? "Error" : "Output"}</span>
            <Copy text={result.text} label={`Copy the output of ${item.name}`} />
          </div>
          <Clip label={`Output of ${item.name}`} text={result.text} />
        </>
      )}
      <Attached list={result.attached} from={item.name} />
    </div>
  );
}

/** The duration, counted while it runs. Calls from before the page was opened have none. */
function Elapsed({ item, isLive }: { item: ToolItem; isLive: boolean }) {
  const [now, tick] = useState(Date.now());
  useEffect(() => {
    if (!isLive) return;
    const timer = setInterval(() => tick(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isLive]);
  if (item.began === undefined || (!isLive && item.ended === undefined)) return null;
  const milliseconds = (item.ended ?? now) - item.began;
  return milliseconds < 1000 ? null : <span class="time">{lasted(milliseconds)}</span>;
}
