import { useEffect, useState } from "preact/hooks";
import { api, call } from "../api";
import { Browsers } from "../parts/Browsers";
import { complain, forget, me, sessions } from "../state/app";
import { link } from "../state/route";
import { type Theme, theme } from "../state/theme";
import type { Granted } from "../types";
import { visible } from "../text/hidden";
import { ago, moment } from "../text/say";
import { Users } from "./Users";

export function Settings() {
  const leave = () => void api.leave().catch(() => {}).then(forget);
  return (
    <main class="page" id="main">
      <header class="bar"><h1>Settings</h1></header>
      <section>
        <h2>This browser</h2>
        <p>Signed in as <b>{me.value?.user}</b> ({me.value?.role}). <button type="button" onClick={leave}>Sign out</button></p>
        <fieldset class="choices">
          <legend>Theme</legend>
          {(["system", "light", "dark"] as Theme[]).map((it) => (
            <label key={it}>
              <input type="radio" name="theme" checked={theme.value === it} onChange={() => (theme.value = it)} />
              {{ system: "System", light: "Light", dark: "Dark" }[it]}
            </label>
          ))}
        </fieldset>
      </section>
      <Rules />
      <Browsers />
      <About />
      {me.value?.role !== "member" && <Users />}
    </main>
  );
}

function About() {
  const [health, set] = useState<{ status: string; version: string } | undefined>(undefined);
  useEffect(() => void call<{ status: string; version: string }>("GET", "/healthz").then(set).catch(complain), []);
  return (
    <section>
      <h2>Server</h2>
      {health && <p>Ostler {health.version}: {health.status === "ok" ? "running" : health.status}. API documentation: <a href="/docs">/docs</a>.</p>}
      {me.value?.role !== "member" && <p><a href={link("doctor")}>Check the installation</a></p>}
    </section>
  );
}

/** Active rules, when they were granted, and when they were last used. */
function Rules() {
  const [rules, set] = useState<Granted[] | undefined>(undefined);
  const load = () => void api.rules().then(({ items }) => set(items)).catch(complain);
  useEffect(load, []);
  const revoke = (rule: Granted) => void api.revokeRule(rule.id).then(load).catch(complain);
  const where = (rule: Granted) => {
    const alsoHooks = rule.unattended ? ", also for hooks and schedules" : "";
    if (!rule.session) return <>sessions in <code>{visible(rule.folder ?? "")}</code>{alsoHooks}</>;
    const title = sessions.value?.find((it) => it.id === rule.session)?.title;
    return <a href={link("chat", rule.session)}>{title || "one session"}</a>;
  };
  return (
    <section aria-labelledby="rules">
      <h2 id="rules">Active rules</h2>
      {rules?.length === 0 && <p class="hint">No rules yet. “Always allow” on an approval adds one.</p>}
      {rules && rules.length > 0 && (
        <div class="wide" tabIndex={0} role="region" aria-labelledby="rules">
          <table>
            <thead><tr><th scope="col">Rule</th><th scope="col">Where</th><th scope="col">Granted</th><th scope="col">Last used</th><td /></tr></thead>
            <tbody>
              {rules.map((rule) => (
                <tr key={rule.id}>
                  <td><code>{visible(rule.rule)}</code></td>
                  <td>{where(rule)}</td>
                  <td title={moment(rule.created)}>{ago(rule.created)} by {rule.by}</td>
                  <td>{rule.lastUsed ? ago(rule.lastUsed) : "never"}</td>
                  <td><button type="button" class="danger" onClick={() => revoke(rule)}>Revoke</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
