// The page key is sent with every request, and removed when the user signs out.

import { afterEach, expect, test, vi } from "vitest";

const kept = new Map<string, string>();
vi.stubGlobal("localStorage", {
  getItem: (name: string) => kept.get(name) ?? null,
  setItem: (name: string, value: string) => kept.set(name, value),
  removeItem: (name: string) => kept.delete(name),
});
const { keepPageKey, socketProtocols } = await import("../src/page-key");
const { api } = await import("../src/api");
const { forget, hasEntered } = await import("../src/state/app");

afterEach(() => kept.clear());

function answering(body: unknown) {
  const sent: Headers[] = [];
  vi.stubGlobal("fetch", async (_: string, init: RequestInit) => {
    sent.push(new Headers(init.headers));
    return new Response(JSON.stringify(body));
  });
  return sent;
}

test("the key of a sign-in is sent with every request and every WebSocket", async () => {
  const sent = answering({ user: "ada", role: "member", pageKey: "ostler_k" });
  expect(await api.enter("code")).toEqual({ user: "ada", role: "member" });
  expect(hasEntered()).toBe(true);
  await api.me();
  await api.say("s", "hello", false);
  expect(sent.map((it) => it.get("x-ostler-page-key"))).toEqual([null, "ostler_k", "ostler_k"]);
  expect(sent[2]!.get("content-type")).toBe("application/json");
  expect(socketProtocols()).toEqual(["ostler", "ostler.page-key.ostler_k"]);
});

test("signing out removes the key", () => {
  keepPageKey("ostler_k");
  forget();
  expect(hasEntered()).toBe(false);
  expect(socketProtocols()).toEqual(["ostler"]);
});
