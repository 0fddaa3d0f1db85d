import { useEffect, useRef, useState } from "preact/hooks";
import type { Attachment } from "../agui/items";
import { complain } from "../state/app";
import { Attached } from "./Attached";
import { attachment } from "./attach";
import { type Offer, taken, typed, useOffers } from "./offers";

interface Props {
  /** The key under which the draft is saved, so that reloading loses nothing. */
  name: string;
  /** The session whose commands and files are offered; none before the first prompt. */
  session?: string;
  isWorking: boolean;
  onSay: (text: string, attached: Attachment[], how: "turn" | "queue" | "steer") => void;
  onStop: () => void;
}

export function Composer({ name, session, isWorking, onSay, onStop }: Props) {
  const key = `ostler-draft-${name}`;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? "");
  const [cursor, place] = useState(0);
  const [attached, attach] = useState<Attachment[]>([]);
  const field = useRef<HTMLTextAreaElement>(null);
  const write = (next: string, at: number) => {
    setText(next);
    place(at);
    if (next) sessionStorage.setItem(key, next);
    else sessionStorage.removeItem(key);
  };
  const send = (how: "turn" | "queue" | "steer") => {
    if (!text.trim()) return field.current?.focus();
    onSay(text.trim(), attached, how);
    write("", 0);
    attach([]);
  };
  const add = async (files: Iterable<File>) => {
    if (isWorking) return complain(new Error("Files need a separate prompt: attach them when the agent has finished."));
    try {
      const found = await Promise.all([...files].map(attachment));
      attach((before) => [...before, ...found]);
    } catch (error) {
      complain(error);
    }
  };
  const { offers, chosen, take, press: pressOffer } = useMenu(session, text, cursor, (next, at) => {
    write(next, at);
    field.current?.focus();
    // After drawing: the cursor moves to the end of the word.
    requestAnimationFrame(() => field.current?.setSelectionRange(at, at));
  });
  const press = (event: KeyboardEvent) => {
    if (pressOffer(event) || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send(isWorking ? "queue" : "turn");
  };
  const drop = (event: DragEvent) => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    void add(event.dataTransfer.files);
  };
  return (
    <form class="composer" onDragOver={(event) => event.preventDefault()} onDrop={drop}
      onSubmit={(event) => { event.preventDefault(); send(isWorking ? "queue" : "turn"); }}>
      <Offers list={offers} chosen={chosen} take={take} />
      <Attached list={attached} onRemove={(gone) => attach(attached.filter((it) => it !== gone))} />
      <label class="unseen" for="prompt">Prompt for the agent</label>
      <textarea
        id="prompt" ref={field} rows={Math.min(8, Math.max(2, text.split("\n").length))} value={text}
        placeholder={isWorking ? "Queue the next prompt, or add to the current one…" : "What should the agent do?"}
        aria-autocomplete="list" aria-controls={offers.length > 0 ? "offers" : undefined}
        aria-activedescendant={offers.length > 0 ? `offer-${chosen}` : undefined}
        onInput={(event) => write(event.currentTarget.value, event.currentTarget.selectionStart)} onKeyDown={press}
        onSelect={(event) => place(event.currentTarget.selectionStart)}
        onPaste={(event) => { if (event.clipboardData?.files.length) void add(event.clipboardData.files); }}
      />
      <div class="actions">
        {!isWorking && session && <span class="hint tip"><kbd>/</kbd> commands, <kbd>@</kbd> files</span>}
        {isWorking ? (
          <>
            <button type="button" class="danger" onClick={onStop}>Interrupt <kbd>Esc</kbd></button>
            <button type="button" disabled={!text.trim()} title="Sends the prompt into the current turn" onClick={() => send("steer")}>Send now</button>
            <button type="submit" class="primary" disabled={!text.trim()}>Queue</button>
          </>
        ) : (
          <>
            <label class="button">
              Attach
              <input type="file" multiple class="unseen" onChange={(event) => {
                if (event.currentTarget.files) void add([...event.currentTarget.files]);
                event.currentTarget.value = "";
              }} />
            </label>
            <button type="submit" class="primary">Send</button>
          </>
        )}
      </div>
    </form>
  );
}

/** Completions for the word at the cursor, and the keys that choose one. */
function useMenu(session: string | undefined, text: string, cursor: number, put: (text: string, cursor: number) => void) {
  const now = typed(text, cursor);
  const word = now && `${now.kind} ${now.word}`;
  const [dismissed, dismiss] = useState<string | undefined>(undefined);
  const [chosen, choose] = useState(0);
  const found = useOffers(session, now);
  // A word that is complete already is not offered.
  const offers = word === dismissed || (found.length === 1 && now && found[0]!.text.slice(1) === now.word) ? [] : found;
  useEffect(() => choose(0), [word]);
  const take = (offer: Offer) => {
    if (!now) return;
    const next = taken(text, now, offer);
    put(next.text, next.cursor);
  };
  const press = (event: KeyboardEvent): boolean => {
    if (offers.length === 0 || event.isComposing) return false;
    const act = {
      ArrowDown: () => choose((chosen + 1) % offers.length),
      ArrowUp: () => choose((chosen + offers.length - 1) % offers.length),
      Tab: () => take(offers[chosen]!),
      Enter: () => take(offers[chosen]!),
      Escape: () => dismiss(word),
    }[event.key];
    if (!act || event.shiftKey) return false;
    event.preventDefault();
    act();
    return true;
  };
  return { offers, chosen: Math.min(chosen, offers.length - 1), take, press };
}

function Offers({ list, chosen, take }: { list: Offer[]; chosen: number; take: (offer: Offer) => void }) {
  if (list.length === 0) return null;
  return (
    <ul class="offers" id="offers" role="listbox" aria-label="Suggestions">
      {list.map((offer, index) => (
        <li key={offer.text} id={`offer-${index}`} role="option" aria-selected={index === chosen}
          // Before the field loses the focus.
          onMouseDown={(event) => { event.preventDefault(); take(offer); }}>
          <code>{offer.text}</code> {offer.hint && <span class="hint">{offer.hint}</span>}
        </li>
      ))}
    </ul>
  );
}
