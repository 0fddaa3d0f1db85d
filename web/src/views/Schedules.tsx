import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { complain } from "../state/app";
import { link } from "../state/route";
import type { Schedule } from "../types";
import { ago, moment } from "../text/say";

export function Schedules() {
  const [list, set] = useState<Schedule[] | undefined>(undefined);
  const load = () => void api.schedules().then(set).catch(complain);
  useEffect(load, []);
  const attempt = (doing: Promise<unknown>) => void doing.then(load).catch(complain);
  return (
    <main class="page" id="main">
      <header class="bar"><h1>Schedules</h1></header>
      {list?.length === 0 && (
        <div class="empty"><h2>No schedules yet</h2><p>Create one below to run a prompt at set times.</p></div>
      )}
      <ul class="rows">
        {list?.map((it) => (
          <li key={it.id}>
            <span class="what">
              <b>{it.name}</b>
              <span class="hint">{it.start.prompt ?? `task ${it.start.task}`} · {Object.values(it.when).join(" ")}</span>
              <span class="hint">
                {it.nextRuns.length > 0 ? `next: ${it.nextRuns.slice(0, 3).map(moment).join(", ")}` : "no next run"}
                {it.last && <> · last {ago(it.last.planned)}: {it.last.session ? <a href={link("chat", it.last.session)}>{it.last.state}</a> : it.last.state}</>}
              </span>
            </span>
            <span class={`badge ${it.state}`}>{it.state}</span>
            {it.state !== "ended" && (
              <button type="button" onClick={() => attempt(api.pauseSchedule(it.id, it.state === "active"))}>{it.state === "active" ? "Pause" : "Resume"}</button>
            )}
            <button type="button" onClick={() => attempt(api.runSchedule(it.id))}>Run now</button>
            <button type="button" class="danger" onClick={() => confirm(`Delete “${it.name}”?`) && attempt(api.removeSchedule(it.id))}>Delete</button>
          </li>
        ))}
      </ul>
      <NewSchedule onDone={load} />
    </main>
  );
}

function NewSchedule({ onDone }: { onDone: () => void }) {
  const [name, setName] = useState("");
  const [prompt, setPrompt] = useState("");
  const [kind, setKind] = useState<"cron" | "every" | "at">("cron");
  const [when, setWhen] = useState("0 9 * * 1-5");
  const [problem, tell] = useState("");
  const create = async (event: Event) => {
    event.preventDefault();
    tell("");
    try {
      const zone = kind === "every" ? {} : { zone: Intl.DateTimeFormat().resolvedOptions().timeZone };
      await api.createSchedule({ name, start: { prompt }, when: { [kind]: when, ...zone } });
      setName("");
      setPrompt("");
      onDone();
    } catch (error) {
      tell((error as Error).message);
    }
  };
  return (
    <form class="task" onSubmit={create}>
      <h2>New schedule</h2>
      <div class="field"><label for="plan-name">Name</label><input id="plan-name" type="text" required value={name} onInput={(event) => setName(event.currentTarget.value)} /></div>
      <div class="field"><label for="plan-prompt">Prompt</label><textarea id="plan-prompt" rows={2} required value={prompt} onInput={(event) => setPrompt(event.currentTarget.value)} /></div>
      <div class="line">
        <label>When
          <select value={kind} onChange={(event) => { setKind(event.currentTarget.value as typeof kind); setWhen(EXAMPLES[event.currentTarget.value as typeof kind]); }}>
            <option value="cron">at times of the day (cron)</option>
            <option value="every">at an interval</option>
            <option value="at">once</option>
          </select>
        </label>
        <label>Time <input type="text" required value={when} aria-describedby="plan-problem" onInput={(event) => setWhen(event.currentTarget.value)} /></label>
      </div>
      <p class="problem" id="plan-problem" role="alert">{problem}</p>
      <div class="actions"><button type="submit" class="primary">Create schedule</button></div>
    </form>
  );
}

const EXAMPLES = { cron: "0 9 * * 1-5", every: "15m", at: `${new Date().getFullYear() + 1}-01-01T09:00` };
