// Where the focus is, for whoever uses keys.

import { settle } from "../state/app";

/** As a `ref`: the field has the focus when it appears. One and the same function, so it is called for that alone. */
export const focused = (field: HTMLElement | null): void => field?.focus();

/**
 * A card is being answered here. What is returned is called when it is: whoever answered it by keys goes on to the next
 * one, or stays where it was. The card may be gone by then, because the server told of the answer first.
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
