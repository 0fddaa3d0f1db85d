import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { Bars, Lengths } from "../parts/Bars";
import { Figures } from "../parts/Figures";
import { complain } from "../state/app";
import type { Spent, Tokens, Usage as Used } from "../types";
import { days, dollars, tokens } from "../text/say";

/** Usage by day. */
export function Usage() {
  const [span, choose] = useState(30);
  const [used, set] = useState<Used | undefined>(undefined);
  useEffect(() => void api.usage(span).then(set).catch(complain), [span]);
  return (
    <main class="page" id="main">
      <header class="bar">
        <h1>Usage</h1>
        <label class="inline">Days <select value={span} onChange={(event) => choose(Number(event.currentTarget.value))}>
          {[7, 30, 90, 365].map((it) => <option key={it} value={it}>{it}</option>)}
        </select></label>
      </header>
      {used === undefined && <p class="note" role="status">Loading…</p>}
      {used && used.total.runs === 0 && (
        <div class="empty"><h2>No usage in this period</h2><p><a href="#/chat">Start a session</a></p></div>
      )}
      {used && used.total.runs > 0 && <Shown used={used} />}
    </main>
  );
}

const KINDS: [keyof Tokens, string][] = [["cacheRead", "read from the cache"], ["cacheCreation", "written to the cache"], ["input", "input"], ["output", "output"]];

function Shown({ used }: { used: Used }) {
  const byDay = new Map(used.days.map((it) => [it.day, it.models]));
  const models = [...new Set(used.days.flatMap((it) => it.models.map((one) => one.model)))];
  const all = days(used.from, used.to);
  const costs = all.map((day) => ({ label: day, values: models.map((model) => byDay.get(day)?.find((it) => it.model === model)?.costUsd ?? 0) }));
  const kinds = all.map((day) => ({ label: day, values: KINDS.map(([kind]) => (byDay.get(day) ?? []).reduce((sum, it) => sum + it.tokens[kind], 0)) }));
  const perModel = models.map((model) => {
    const parts = used.days.flatMap((it) => it.models.filter((one) => one.model === model));
    const sum = (of: (it: Spent) => number) => parts.reduce((total, it) => total + of(it), 0);
    return { name: model, value: sum((it) => it.costUsd), says: `${dollars(sum((it) => it.costUsd))} · ${sum((it) => it.runs)} runs` };
  });
  return (
    <>
      <Figures spent={used.total} />
      <Bars title="Cost per day" series={models} bars={costs} say={dollars} />
      <Bars title="Tokens per day" series={KINDS.map(([, words]) => words)} bars={kinds} say={tokens} />
      <section aria-labelledby="models"><h2 id="models">Models</h2><Lengths label="Cost by model" rows={perModel} /></section>
    </>
  );
}
