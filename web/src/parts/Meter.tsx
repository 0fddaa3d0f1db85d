import type { TokenUsage } from "@ag-ui/core";
import { dollars, tokens } from "../text/say";

/** What the conversation cost so far, and how many tokens the last run took. */
export function Meter({ usage, cost }: { usage: TokenUsage[]; cost: number | undefined }) {
  const used = usage.reduce((sum, it) => sum + (it.inputTokens ?? 0) + (it.outputTokens ?? 0), 0);
  if (cost === undefined && used === 0) return null;
  return (
    <span class="meter hint">
      {used > 0 && <span title="Tokens of the last run">{tokens(used)} tokens</span>}
      {cost !== undefined && <span title="Cost of this session so far">{dollars(cost)}</span>}
    </span>
  );
}
