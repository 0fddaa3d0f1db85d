import type { Spent } from "../types";
import { dollars, percent, tokens } from "../text/say";

/** The sums, large enough to be seen at a glance. */
export function Figures({ spent }: { spent: Spent }) {
  const { input, output, cacheRead, cacheCreation } = spent.tokens;
  const read = input + cacheRead + cacheCreation;
  const shown: [string, string, string][] = [
    ["Cost", dollars(spent.costUsd), "By the vendor's price list"],
    ["Runs", String(spent.runs), "Prompts that were answered"],
    ["Tokens", tokens(read + output), `${tokens(read)} in, ${tokens(output)} out`],
    ["From the cache", read === 0 ? "–" : percent(cacheRead / read), "Share of the input read from the cache; more is cheaper"],
  ];
  return (
    <dl class="figures">
      {shown.map(([name, value, about]) => (
        <div key={name}><dt>{name}</dt><dd>{value}</dd><dd class="hint">{about}</dd></div>
      ))}
    </dl>
  );
}
