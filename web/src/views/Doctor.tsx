import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { complain } from "../state/app";
import type { Check } from "../types";

const WORDS = { ok: "ok", warn: "warning", fail: "failed" };

/** The server's checks, with advice for those that fail. */
export function Doctor() {
  const [checks, set] = useState<Check[] | undefined>(undefined);
  const look = () => void api.doctor().then((it) => set(it.checks)).catch(complain);
  useEffect(look, []);
  const bad = checks?.filter((it) => it.state !== "ok").length ?? 0;
  return (
    <main class="page" id="main">
      <header class="bar"><h1>Doctor</h1><button type="button" onClick={look}>Check again</button></header>
      {checks === undefined && <p class="note" role="status">Checking…</p>}
      {checks && <p role="status">{bad === 0 ? "All checks passed." : bad === 1 ? "1 check needs attention." : `${bad} checks need attention.`}</p>}
      <ul class="rows" aria-label="Checks">
        {checks?.map((check) => (
          <li key={check.id}>
            <span><b>{check.title}</b><span>{check.says}</span>{check.next && <span class="hint">{check.next}</span>}</span>
            <span class={`badge ${check.state === "fail" ? "failed" : check.state === "warn" ? "waiting" : ""}`}>{WORDS[check.state]}</span>
          </li>
        ))}
      </ul>
    </main>
  );
}
