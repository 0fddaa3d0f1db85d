// Moves the focus, for keyboard users.

import { settle } from "../state/app";

/** As a `ref`: focuses the field when it appears. A constant function, so that it is called only then. */
export const focused = (field: HTMLElement | null): void => field?.focus();

/**
 * Called while a card is answered; the returned function is called afterwards. It moves keyboard users to the next
 * card, or leaves the focus where it is. The card may be gone by then, because the server reported the answer first.
 */
export function answering(id: string): () => void {
  const cards = [...document.querySelectorAll<HTMLElement>("[data-card]")];
  const at = cards.findIndex((card) => card.dataset.card === id);
  const wasHere = cards[at]?.contains(document.activeElement) ?? false;
  const next = cards[at + 1] ?? cards[at - 1] ?? document.querySelector<HTMLElement>("main .status, main h1");
  return () => {
    settle(id);
    const isElsewhere = document.activeElement !== document.body && !cards[at]?.contains(document.activeElement);
    if (wasHere && !isElsewhere) next?.focus();
  };
}
