import { useState } from "preact/hooks";

const LINES = 30;
const LETTERS = 6_000;

/** A text of any length, of which so much is shown at first that it does not get in the way. */
export function Clip({ text, label }: { text: string; label: string }) {
  const [isOpen, open] = useState(false);
  const lines = text.split("\n");
  const isLong = lines.length > LINES || text.length > LETTERS;
  const shown = isLong && !isOpen ? lines.slice(0, LINES).join("\n").slice(0, LETTERS) : text;
  return (
    <div class="clip">
      <pre tabIndex={0} aria-label={label}>{shown}</pre>
      {isLong && (
        <button type="button" class="link" onClick={() => open(!isOpen)}>
          {isOpen ? "Show less" : `Show all ${lines.length} lines`}
        </button>
      )}
    </div>
  );
}
