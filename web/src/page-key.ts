// The second half of a sign-in. The browser sends its cookie to every port of this host; this key stays with pages of this
// host and port, and the server requires both.

const NAME = "ostler-page-key";

export function pageKey(): string | null {
  return localStorage.getItem(NAME);
}

export function keepPageKey(key: string | null): void {
  if (key === null) localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, key);
}

/** These headers, with the key. */
export function withPageKey(headers?: HeadersInit): Headers {
  const all = new Headers(headers);
  const key = pageKey();
  if (key !== null) all.set("x-ostler-page-key", key);
  return all;
}

/** A WebSocket cannot send headers, so the key is one of the protocols that it offers. The server takes the other one. */
export function socketProtocols(): string[] {
  const key = pageKey();
  return key === null ? ["ostler"] : ["ostler", `ostler.page-key.${key}`];
}
