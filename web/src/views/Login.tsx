import { useEffect, useState } from "preact/hooks";
import { ApiError, api } from "../api";
import { focused } from "../parts/focus";
import { me } from "../state/app";

/** A code in the address is used once and removed from it at once. */
function codeOfAddress(): string | undefined {
  const found = /^#code=([\w-]+)$/.exec(location.hash)?.[1];
  if (found) history.replaceState(null, "", "/");
  return found;
}

export function Login() {
  const [word, write] = useState("");
  const [problem, tell] = useState("");
  const [isBusy, busy] = useState(false);

  const enter = async (given: string) => {
    busy(true);
    tell("");
    try {
      me.value = await api.enter(given);
    } catch (error) {
      const wrong = error instanceof ApiError && error.status === 401;
      // A token works as well: it is exchanged for a code.
      const code = wrong ? await api.codeFor(given).catch(() => undefined) : undefined;
      const entered = code && (await api.enter(code.code).catch(() => undefined));
      if (entered) me.value = entered;
      else if (wrong) tell("Unknown code or token. A code is valid once and for five minutes: ask for a new one.");
      else tell((error as Error).message);
    } finally {
      busy(false);
    }
  };
  useEffect(() => {
    const code = codeOfAddress();
    if (code) void enter(code);
  }, []);

  const submit = (event: Event) => {
    event.preventDefault();
    if (word.trim()) void enter(word.trim());
  };
  return (
    <main class="login" id="main">
      <form class="card" onSubmit={submit}>
        <h1>Ostler</h1>
        <p>This browser is not signed in. Enter a one-time code or a token.</p>
        <label>
          Code or token
          <input type="password" autoComplete="off" value={word} ref={focused} aria-describedby="login-problem" onInput={(event) => write(event.currentTarget.value)} />
        </label>
        <p id="login-problem" class="problem" role="alert">{problem}</p>
        <button type="submit" class="primary" disabled={isBusy}>Sign in</button>
        <p class="hint">
          <code>ostler serve --show-code</code> prints a code when the server starts; the token is in the file <code>token</code> of
          the server's data folder.
        </p>
      </form>
    </main>
  );
}
