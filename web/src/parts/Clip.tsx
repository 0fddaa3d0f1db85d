import { useState } from "preact/hooks";

const LINES = 30;
const LETTERS = 6_000;

/** Whether a text is so long that only its start is shown at first. */
export const isLong = (text: string): boolean => text.split("\n").length > LINES || text.length > LETTERS;

/** A text of any length, shortened at first. */
export function Clip({ text, label, onOpen }: { text: string; label: string; onOpen?: () => void }) {
  const [isOpen, open] = useState(false);
  const lines = text.split("\n");
  const isCut = isLong(text);
  const shown = isCut && !isOpen ? lines.slice(0, LINES).join("\n").slice(0, LETTERS) : text;
  const toggle = () => {
    if (!isOpen) onOpen?.();
    open(!isOpen);
  };
  return (
    <div class="clip">
      <pre tabIndex={0} aria-label={label}>{shown}</pre>
      {isCut && (
        <button type="button" class="link" onClick={toggle}>
          {isOpen ? "Show less" : `Show all ${lines.length} lines`}
        </button>
      )}
    </div>
  );
}
