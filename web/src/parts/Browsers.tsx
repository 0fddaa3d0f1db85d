import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { complain } from "../state/app";
import type { KnownBrowser } from "../types";
import { ago, moment } from "../text/say";

/** The signed-in browsers, and how to sign one out. */
export function Browsers() {
  const [browsers, set] = useState<KnownBrowser[] | undefined>(undefined);
  const load = () => void api.browsers().then((it) => set(it.items)).catch(complain);
  useEffect(load, []);
  return (
    <section aria-labelledby="browsers">
      <h2 id="browsers">Signed-in browsers</h2>
      <ul class="rows">
        {browsers?.map((it) => (
          <li key={it.id}>
            <span>
              <b>{it.label ?? "A browser"}{it.current && " (this one)"}</b>
              <span class="hint">{it.user} · since {moment(it.made)} · last seen {ago(it.used)}</span>
            </span>
            {!it.current && <button type="button" class="danger" onClick={() => void api.removeBrowser(it.id).then(load).catch(complain)}>Sign out</button>}
          </li>
        ))}
      </ul>
    </section>
  );
}
