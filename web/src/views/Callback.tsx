import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { link } from "../state/route";

/** Where browsers are led back after signing in to an MCP server. */
export const CALLBACK = "/mcp-callback";

/** Sends the address of this page to the server, once, and says how it ended. */
export function Callback() {
  const [done, set] = useState<{ server?: string; session?: string; problem?: string }>({});
  useEffect(() => {
    const url = location.href;
    // The code in the address must not stay in the history.
    history.replaceState(null, "", CALLBACK);
    api.finishMcpSignIn(url).then(set).catch((error: Error) => set({ problem: error.message }));
  }, []);
  const { server, session, problem } = done;
  return (
    <main class="page" id="main">
      <h1>{server ? `Signed in to ${server}` : problem ? "Signing in did not work" : "Signing in…"}</h1>
      {problem && <p class="problem" role="alert">{problem}</p>}
      {session && <p>You can close this tab, or <a href={`/${link("chat", session)}`}>return to the conversation</a>.</p>}
      {problem && <p><a href="/">Return to Ostler</a></p>}
    </main>
  );
}
