import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export const isShown = signal(false);

const KEYS: [string, string][] = [
  ["j / k", "next / previous card that waits"],
  ["y", "allow once"],
  ["s", "allow for this session"],
  ["a", "allow always"],
  ["n", "deny, with a note"],
  ["i", "open the inbox"],
  ["c", "start a new session"],
  ["/", "go to the prompt"],
  ["Esc", "interrupt, or leave a field"],
  ["?", "show this list"],
];

/** Moves to the next or previous pending card. */
function step(by: 1 | -1): void {
  const cards = [...document.querySelectorAll<HTMLElement>("[data-card]")];
  const now = cards.findIndex((card) => card.contains(document.activeElement));
  const next = cards[now < 0 ? (by > 0 ? 0 : cards.length - 1) : (now + by + cards.length) % cards.length];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function press(event: KeyboardEvent): void {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    j: () => step(1),
    k: () => step(-1),
    i: () => (location.hash = "#/inbox"),
    c: () => (location.hash = "#/chat"),
    "/": () => document.getElementById("prompt")?.focus(),
    "?": () => (isShown.value = true),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isShown.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isShown.value]);
  return (
    <dialog ref={dialog} aria-labelledby="keys" onClose={() => (isShown.value = false)}>
      <h2 id="keys">Keys</h2>
      <dl>{KEYS.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <button type="button" class="primary" onClick={() => (isShown.value = false)}>Close</button>
    </dialog>
  );
}
