import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { Bars, Lengths } from "../parts/Bars";
import { Changes } from "../parts/Changes";
import { EngineView } from "../parts/EngineView";
import { Figures } from "../parts/Figures";
import { McpServers } from "../parts/McpServers";
import { complain, sessions } from "../state/app";
import { link } from "../state/route";
import type { SessionUsage } from "../types";
import { dollars, lasted, percent, tokens } from "../text/say";

/** Everything about a session except its conversation. */
export function About({ id }: { id: string }) {
  const title = sessions.value?.find((it) => it.id === id)?.title;
  return (
    <main class="page" id="main">
      <header class="bar"><h1>{title || "Session"}</h1><a href={link("chat", id)}>Back to the conversation</a></header>
      <Changes id={id} />
      <UsageOf id={id} />
      <McpServers id={id} />
      <EngineView id={id} />
    </main>
  );
}

function UsageOf({ id }: { id: string }) {
  const [used, set] = useState<SessionUsage | undefined>(undefined);
  useEffect(() => void api.sessionUsage(id).then(set).catch(complain), [id]);
  if (!used) return <p class="note" role="status">Loading…</p>;
  const { context, runs, tools } = used;
  const times = tools.map((tool) => ({
    name: tool.name, value: tool.totalMs, says: `${lasted(tool.totalMs)} in ${tool.count === 1 ? "1 call" : `${tool.count} calls`}, the longest ${lasted(tool.longestMs)}`,
  }));
  return (
    <section aria-labelledby="usage">
      <h2 id="usage">Usage</h2>
      <Figures spent={used.total} />
      {context && (
        <p>The conversation takes {tokens(context.used)} tokens{context.size ? <> of the {tokens(context.size)} that the model can hold (<b>{percent(context.used / context.size)}</b>)</> : null}.</p>
      )}
      {runs.length > 1 && (
        <Bars title="Cost per run" series={["cost"]} say={dollars} bars={runs.map((run, index) => ({ label: `${index + 1}: ${run.prompt.slice(0, 40)}`, values: [run.costUsd] }))} />
      )}
      {times.length > 0 && (
        <section aria-labelledby="tools"><h3 id="tools">Time by tool</h3><Lengths label="Time by tool" rows={times} /></section>
      )}
    </section>
  );
}
