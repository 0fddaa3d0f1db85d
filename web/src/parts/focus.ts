// Moves the focus, for keyboard users.

/** As a `ref`: focuses the field when it appears. A constant function, so that it is called only then. */
export const focused = (field: HTMLElement | null): void => field?.focus();

/**
 * Called when a card is answered; the returned function is called when the card leaves the page. It moves keyboard
 * users to the next card in that same moment, so that no key is lost, or leaves the focus where it is.
 */
export function answering(id: string): () => void {
  const find = () => [...document.querySelectorAll<HTMLElement>("[data-card]")];
  const card = find().find((it) => it.dataset.card === id);
  const wasHere = card?.contains(document.activeElement) ?? false;
  return () => {
    const isElsewhere = document.activeElement !== document.body && !card?.contains(document.activeElement);
    if (!card || !wasHere || isElsewhere) return;
    const cards = find();
    const at = cards.indexOf(card);
    const next = cards[at + 1] ?? cards[at - 1] ?? document.querySelector<HTMLElement>("main .status, main h1");
    next?.focus();
  };
}
