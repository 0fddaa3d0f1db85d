import { link } from "../state/route";
import type { SessionUsage } from "../types";
import { dollars, percent, tokens } from "../text/say";

/** The cost of the conversation so far, and how full the context window is. */
export function Meter({ session, usage }: { session: string; usage: SessionUsage | undefined }) {
  if (!usage || usage.total.runs === 0) return null;
  const { used = 0, size } = usage.context ?? {};
  const share = size ? used / size : undefined;
  return (
    <a class="meter hint" href={link("about", session)} aria-label="Usage of this session">
      {share !== undefined && (
        <span class="context" title={`${tokens(used)} of the ${tokens(size!)} tokens of the context window`}>
          <svg viewBox="0 0 40 6" aria-hidden="true"><rect width="40" height="6" rx="3" class="ground" /><rect width={Math.min(40, share * 40)} height="6" rx="3" class={share > 0.8 ? "full" : "series-0"} /></svg>
          {percent(share)} full
        </span>
      )}
      {share === undefined && used > 0 && <span>{tokens(used)} tokens</span>}
      <span title="Cost of this session so far">{dollars(usage.total.costUsd)}</span>
    </a>
  );
}
