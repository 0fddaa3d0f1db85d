// Characters that are invisible, look like a space, or change how others are shown. In approvals they
// are shown by their number: a command must not read differently from what runs.

/** From and to, both included. `crates/ostler-core/src/approvals/hidden.rs` has the same list, and a test there compares them. */
export const HIDDEN: [number, number][] = [
  [0x0000, 0x0008], [0x000b, 0x001f], [0x007f, 0x00a0], [0x00ad, 0x00ad], [0x034f, 0x034f], [0x061c, 0x061c],
  [0x115f, 0x1160], [0x1680, 0x1680], [0x17b4, 0x17b5], [0x180b, 0x180f], [0x2000, 0x200f], [0x2028, 0x202f],
  [0x205f, 0x206f], [0x2800, 0x2800], [0x3000, 0x3000], [0x3164, 0x3164], [0xd800, 0xdfff], [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff], [0xffa0, 0xffa0], [0xfff0, 0xfffb], [0x1bca0, 0x1bca3], [0x1d173, 0x1d17a], [0xe0000, 0xe0fff],
];

const isHidden = (code: number): boolean => HIDDEN.some(([from, to]) => from <= code && code <= to);

/** The text with every such character as `⟨U+202E⟩`. Line breaks and tabs stay. */
export function visible(text: string): string {
  let shown = "";
  // By whole characters; a lone surrogate is shown by its number, too.
  for (const character of text) {
    const code = character.codePointAt(0)!;
    shown += isHidden(code) ? `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩` : character;
  }
  return shown;
}
