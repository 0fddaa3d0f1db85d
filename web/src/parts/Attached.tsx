import type { Attachment } from "../agui/items";

/** Attachments of a text: images as they are, other files by their names. */
export function Attached({ list, from, onRemove }: { list: Attachment[]; from?: string; onRemove?: (it: Attachment) => void }) {
  if (list.length === 0) return null;
  const where = from ? ` from ${from}` : "";
  return (
    <ul class="attached" aria-label={`Attached${where}`}>
      {list.map((it, index) => {
        const name = it.name ?? `${it.kind === "image" ? "Picture" : "Document"} ${index + 1}`;
        return (
          <li key={index}>
            {it.kind === "image" ? <img src={`data:${it.mime};base64,${it.data}`} alt={`${name}${where}`} /> : <span class="file">{name}</span>}
            {onRemove && <button type="button" class="quiet" aria-label={`Remove ${name}`} onClick={() => onRemove(it)}>✕</button>}
          </li>
        );
      })}
    </ul>
  );
}
