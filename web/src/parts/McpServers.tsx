import { useCallback, useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { complain, say } from "../state/app";
import type { McpServer, McpServerConfig } from "../types";

/** The MCP servers of a session: which it uses, their state, and a form for its own. */
export function McpServers({ id }: { id: string }) {
  const [servers, set] = useState<McpServer[] | undefined>(undefined);
  const load = useCallback(() => void api.mcpServers(id).then(({ items }) => set(items)).catch(complain), [id]);
  useEffect(load, [load]);
  const change = (work: Promise<unknown>) => void work.then(load).catch(complain);
  if (!servers) return <section aria-label="MCP servers"><p class="note" role="status">Loading…</p></section>;
  return (
    <section aria-labelledby="mcp">
      <h2 id="mcp">MCP servers</h2>
      {servers.length === 0 && <p class="hint">This session has no MCP servers. Add one below.</p>}
      <ul class="rows">
        {servers.map((server) => (
          <li key={server.name}>
            <label class="pick">
              <input type="checkbox" checked={server.on} onChange={(event) => change(api.switchMcpServer(id, server.name, event.currentTarget.checked))} />
              <span>
                <b>{server.name}</b> <span class="hint">{describe(server)}</span>
                <code class="clip">{server.summary}</code>
                {(server.problem ?? server.error) && <span class="problem">{server.problem ?? server.error}</span>}
              </span>
            </label>
            <State server={server} />
            {server.status === "needs-auth" && <SignIn id={id} name={server.name} />}
            {server.from === "session" && <button type="button" class="quiet" onClick={() => change(api.removeMcpServer(id, server.name))}>Remove {server.name}</button>}
          </li>
        ))}
      </ul>
      <p class="hint">Changes take effect with the next prompt.</p>
      <AddServer onAdd={(name, config) => api.putMcpServer(id, name, config).then(load)} />
    </section>
  );
}

function describe({ from, by, variables, shared }: McpServer): string {
  const parts = [from === "space" ? `of the space, added by ${by}` : "of this session"];
  if (shared) parts.push("shared by your sessions");
  if (variables.length > 0) parts.push(`with ${variables.join(", ")}`);
  return parts.join(" · ");
}

function State({ server }: { server: McpServer }) {
  const state = server.problem ? "does not start" : !server.on ? "off" : server.status;
  if (!state) return null;
  const tone = state === "connected" ? "" : state === "off" || state === "pending" ? "quiet" : "failed";
  const tools = server.tools === undefined ? "" : `, ${server.tools} ${server.tools === 1 ? "tool" : "tools"}`;
  return <span class={`badge ${tone}`}>{state}{tools}</span>;
}

/** Opens the sign-in of a server in another tab, which leads back to this page (see `Callback`). */
export function SignIn({ id, name }: { id: string; name: string }) {
  const [isBusy, setBusy] = useState(false);
  const begin = async () => {
    // Opened now, because browsers allow it only while a click is handled. It must not reach this page.
    const tab = open("about:blank", "_blank");
    if (tab) tab.opener = null;
    setBusy(true);
    try {
      const { url } = await api.signInToMcpServer(id, name);
      if (!/^https?:/.test(url)) throw new Error(`The address of the sign-in is not a web address: ${url.slice(0, 40)}`);
      if (tab) tab.location.href = url;
      else location.href = url;
    } catch (error) {
      tab?.close();
      complain(error);
    } finally {
      setBusy(false);
    }
  };
  return <button type="button" disabled={isBusy} onClick={() => void begin()}>Sign in to {name}</button>;
}

/** Cards for servers that wait for the user to sign in. `moment` changes when the state may have changed. */
export function SignInCards({ id, moment }: { id: string; moment: unknown }) {
  const [waiting, set] = useState<string[]>([]);
  useEffect(() => {
    const look = () => void api.mcpServers(id).then(({ items }) => {
      set(items.filter((it) => it.on && it.status === "needs-auth").map((it) => it.name));
    }).catch(() => {});
    look();
    // The user comes back from the tab of the sign-in.
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, [id, moment]);
  return (
    <>
      {waiting.map((name) => (
        <section key={name} class="card" role="group" aria-label={`Sign in to ${name}`}>
          <p>The MCP server <b>{name}</b> needs you to sign in. Its tools are not available until then.</p>
          <p><SignIn id={id} name={name} /></p>
        </section>
      ))}
    </>
  );
}

const EMPTY = { name: "", kind: "stdio" as "stdio" | "http", place: "", args: "", values: "", shared: false };

function AddServer({ onAdd }: { onAdd: (name: string, config: McpServerConfig) => Promise<unknown> }) {
  const [form, set] = useState(EMPTY);
  const put = (change: Partial<typeof EMPTY>) => set({ ...form, ...change });
  const submit = (event: Event) => {
    event.preventDefault();
    void onAdd(form.name.trim(), configOf(form)).then(() => { set(EMPTY); say("The server is added."); }).catch(complain);
  };
  const isProgram = form.kind === "stdio";
  return (
    <details>
      <summary>Add an MCP server to this session</summary>
      <form class="fields" onSubmit={submit}>
        <label>Name <input required pattern="[a-z0-9][a-z0-9\-]*" value={form.name} onInput={(event) => put({ name: event.currentTarget.value })} /></label>
        <label>Kind
          <select value={form.kind} onChange={(event) => put({ kind: event.currentTarget.value as "stdio" | "http" })}>
            <option value="stdio">Program on the server</option>
            <option value="http">Address (administrators only)</option>
          </select>
        </label>
        <label>{isProgram ? "Program" : "Address"} <input required value={form.place} onInput={(event) => put({ place: event.currentTarget.value })} /></label>
        {isProgram && <label>Arguments, one per line <textarea rows={2} value={form.args} onInput={(event) => put({ args: event.currentTarget.value })} /></label>}
        <label>{isProgram ? "Variables" : "Headers"}, one NAME=value per line <textarea rows={2} value={form.values} onInput={(event) => put({ values: event.currentTarget.value })} /></label>
        {isProgram && (
          <label class="pick">
            <input type="checkbox" checked={form.shared} onChange={(event) => put({ shared: event.currentTarget.checked })} />
            <span>Share one process among my sessions in the same folder. Only for servers that remember nothing between calls.</span>
          </label>
        )}
        <button>Add server</button>
      </form>
    </details>
  );
}

/** The configuration of a filled-in form. */
export function configOf({ kind, place, args, values, shared }: typeof EMPTY): McpServerConfig {
  const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);
  const named = Object.fromEntries(lines(values).map((line) => {
    const [name, ...rest] = line.split("=");
    return [name!.trim(), rest.join("=").trim()];
  }));
  return kind === "stdio"
    ? { type: "stdio", command: place.trim(), args: lines(args), env: named, shared }
    : { type: "http", url: place.trim(), headers: named };
}
