// Entry point: finds out who is signed in, and shows the page or the sign-in form.

import { render } from "preact";
import { useEffect } from "preact/hooks";
import { ApiError, api, whenStranger } from "./api";
import { complain, forget, hasEntered, me } from "./state/app";
import "./state/theme";
import { CALLBACK, Callback } from "./views/Callback";
import { Login } from "./views/Login";
import { Shell } from "./views/Shell";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/chat.css";
import "./styles/cards.css";
import "./styles/charts.css";

whenStranger(forget);

async function look(): Promise<void> {
  // A browser that never signed in need not ask the server.
  if (!hasEntered()) {
    me.value = null;
    return;
  }
  try {
    me.value = await api.me();
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) me.value = null;
    else {
      complain(error);
      setTimeout(look, 2000);
    }
  }
}

function Page() {
  useEffect(() => void look(), []);
  if (me.value === undefined) return <p class="note" role="status">Looking who is here…</p>;
  if (me.value === null) return <Login />;
  return location.pathname === CALLBACK ? <Callback /> : <Shell />;
}

render(<Page />, document.getElementById("page")!);
