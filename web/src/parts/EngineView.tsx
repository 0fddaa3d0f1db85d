import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { complain } from "../state/app";
import type { Engine, Sandbox } from "../types";
import { limitsOf } from "../text/limits";
import { ago } from "../text/say";

/** The setup of a session's agent: model, tools, subagents and servers, as reported when it started. */
export function EngineView({ id }: { id: string }) {
  const [engine, set] = useState<Engine | undefined>(undefined);
  useEffect(() => void api.engine(id).then(set).catch(complain), [id]);
  if (!engine) return <section aria-label="Agent"><p class="note" role="status">Loading…</p></section>;
  const { at, model, permissionMode, cwd, version, tools, agents, skills, mcpServers } = engine;
  if (at === undefined) return <section aria-labelledby="engine"><h2 id="engine">Agent</h2><p class="hint">No agent has run in this session yet.</p></section>;
  const facts: [string, string | undefined][] = [["Model", model], ["Mode", permissionMode], ["Folder", cwd], ["Engine", version]];
  return (
    <section aria-labelledby="engine">
      <h2 id="engine">Agent <span class="hint">{engine.live ? "running" : `last seen ${ago(at)}`}</span></h2>
      <dl class="facts">
        {facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <SandboxView sandbox={engine.sandbox} />
      <h3>Connections to MCP servers</h3>
      {mcpServers.length === 0 && <p class="hint">None.</p>}
      <ul class="rows">
        {mcpServers.map((server) => (
          <li key={server.name}>
            <span><b>{server.name}</b>{server.error && <span class="problem">{server.error}</span>}</span>
            {server.tools !== undefined && <span class="hint">{server.tools} tools</span>}
            <span class={`badge ${server.status === "connected" ? "" : server.status === "pending" ? "quiet" : "failed"}`}>{server.status}</span>
          </li>
        ))}
      </ul>
      <h3>Subagents</h3>
      {agents.length === 0 && <p class="hint">None.</p>}
      <ul class="rows">
        {agents.map((agent) => <li key={agent.name}><span><b>{agent.name}</b><span class="hint">{agent.description}</span></span></li>)}
      </ul>
      <details><summary>{tools.length} tools</summary><p class="hint">{tools.join(", ")}</p></details>
      {skills.length > 0 && <details><summary>{skills.length} skills</summary><p class="hint">{skills.join(", ")}</p></details>}
    </section>
  );
}

/** What the system enforces for the commands of the agent. */
function SandboxView({ sandbox }: { sandbox: Sandbox | undefined }) {
  if (!sandbox) return <><h3>Sandbox</h3><p class="hint">None: commands run with the rights of the server's user.</p></>;
  const { backend, layers, user, writable, protected: kept, hidden, network, unixSockets, missing } = sandbox;
  const on = Object.entries(layers).filter(([, isOn]) => isOn).map(([name]) => name);
  const facts: [string, string][] = [
    ["Enforced by", `${backend} (${on.join(", ")})`],
    ["Runs as user", String(user)],
    ["Can write", writable.join(", ")],
    ["Network", network],
    ["Unix sockets", unixSockets],
    ["Limits", limitsOf(sandbox).join(", ")],
    ["Not possible here", missing.join("; ")],
  ];
  return (
    <>
      <h3>Sandbox</h3>
      <dl class="facts">
        {facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <details><summary>{kept.length} protected and {hidden.length} hidden paths</summary><p class="hint">{[...kept, ...hidden].join(", ")}</p></details>
    </>
  );
}
