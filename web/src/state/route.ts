// The current view, kept in the address after `#` so that reloading and going back work.

import { signal } from "@preact/signals";

export type Place = "chat" | "inbox" | "tasks" | "schedules" | "sessions" | "about" | "usage" | "settings" | "doctor";
export interface Route {
  place: Place;
  id?: string;
}

const PLACES: Place[] = ["chat", "inbox", "tasks", "schedules", "sessions", "about", "usage", "settings", "doctor"];

export function read(hash: string): Route {
  const [place, id] = hash.replace(/^#\/?/, "").split("/");
  const known = PLACES.find((it) => it === place) ?? "chat";
  return id ? { place: known, id: decodeURIComponent(id) } : { place: known };
}

export const route = signal<Route>(read(location.hash));
addEventListener("hashchange", () => (route.value = read(location.hash)));

export function link(place: Place, id?: string): string {
  return id ? `#/${place}/${encodeURIComponent(id)}` : `#/${place}`;
}

export function go(place: Place, id?: string): void {
  location.hash = link(place, id);
}
