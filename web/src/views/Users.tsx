import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { complain } from "../state/app";
import { Copy } from "../parts/Copy";
import type { User } from "../types";

/** The users of the server and their tokens. */
export function Users() {
  const [users, set] = useState<User[] | undefined>(undefined);
  const [name, write] = useState("");
  const [role, choose] = useState("member");
  const [shown, show] = useState<{ name: string; token: string } | undefined>(undefined);
  const load = () => void api.users().then((it) => set(it.users)).catch(complain);
  useEffect(load, []);
  const attempt = (doing: Promise<unknown>) => void doing.then(load).catch(complain);
  const add = (event: Event) => {
    event.preventDefault();
    attempt(api.addUser(name.trim(), role).then(() => write("")));
  };
  const issue = (user: User) =>
    attempt(api.issueToken(user.name, `from the page, ${new Date().toLocaleDateString()}`).then(({ token }) => show({ name: user.name, token })));
  return (
    <section aria-labelledby="users">
      <h2 id="users">Users</h2>
      {shown && (
        <div class="card" role="status">
          <p>The token of {shown.name}, shown this once:</p>
          <p><code>{shown.token}</code> <Copy text={shown.token} label="Copy the token" /></p>
          <button type="button" onClick={() => show(undefined)}>Done</button>
        </div>
      )}
      {users?.length === 0 && <p class="hint">No users except the owner. Add one below.</p>}
      <ul class="rows">
        {users?.map((user) => (
          <li key={user.name}>
            <span><b>{user.name}</b> <span class="hint">{user.role}</span></span>
            <span class="tokens">
              {user.tokens.map((token) => (
                <button key={token.id} type="button" class="quiet" onClick={() => attempt(api.revokeToken(user.name, token.id))}>
                  Revoke “{token.label || token.id}”
                </button>
              ))}
              <button type="button" onClick={() => issue(user)}>Create token</button>
              <button type="button" class="danger" onClick={() => confirm(`Remove ${user.name}?`) && attempt(api.removeUser(user.name))}>Remove user</button>
            </span>
          </li>
        ))}
      </ul>
      <form class="line" onSubmit={add}>
        <label>Name <input type="text" required value={name} pattern="[A-Za-z][A-Za-z0-9._\-]{0,63}" onInput={(event) => write(event.currentTarget.value)} /></label>
        <label>Role
          <select value={role} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="member">member</option>
            <option value="admin">admin</option>
          </select>
        </label>
        <button type="submit">Add user</button>
      </form>
    </section>
  );
}
