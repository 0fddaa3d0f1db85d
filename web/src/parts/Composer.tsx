import { useEffect, useRef, useState } from "preact/hooks";
import type { Picture } from "../agui/items";
import { api } from "../api";
import { complain } from "../state/app";

const LARGEST = 5 << 20;

interface Props {
  /** Where the draft is kept, so that reloading loses nothing. */
  name: string;
  /** Whose commands can be used; there is none before the first prompt. */
  session?: string;
  isWorking: boolean;
  onSay: (text: string, images: Picture[], how: "turn" | "queue" | "steer") => void;
  onStop: () => void;
}

export function Composer({ name, session, isWorking, onSay, onStop }: Props) {
  const key = `ostler-draft-${name}`;
  const [text, setText] = useState(() => sessionStorage.getItem(key) ?? "");
  const [images, attach] = useState<Picture[]>([]);
  const commands = useCommands(session, text);
  const field = useRef<HTMLTextAreaElement>(null);
  const write = (next: string) => {
    setText(next);
    if (next) sessionStorage.setItem(key, next);
    else sessionStorage.removeItem(key);
  };
  const send = (how: "turn" | "queue" | "steer") => {
    if (!text.trim()) return field.current?.focus();
    onSay(text.trim(), images, how);
    write("");
    attach([]);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send(isWorking ? "queue" : "turn");
  };
  const add = async (files: Iterable<File>) => {
    try {
      const found = await Promise.all([...files].filter((it) => it.type.startsWith("image/")).map(picture));
      attach([...images, ...found]);
    } catch (error) {
      complain(error);
    }
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(isWorking ? "queue" : "turn"); }}>
      {images.length > 0 && (
        <ul class="attached" aria-label="Attached pictures">
          {images.map((image, index) => (
            <li key={index}>
              <img src={`data:${image.mime};base64,${image.data}`} alt={`Picture ${index + 1}`} />
              <button type="button" class="quiet" aria-label={`Remove picture ${index + 1}`} onClick={() => attach(images.filter((it) => it !== image))}>✕</button>
            </li>
          ))}
        </ul>
      )}
      <label class="unseen" for="prompt">What the agent is to do</label>
      <textarea
        id="prompt" ref={field} rows={Math.min(8, Math.max(2, text.split("\n").length))} value={text}
        placeholder={isWorking ? "Say what comes next, or more about this…" : "What is to be done?"}
        onInput={(event) => write(event.currentTarget.value)} onKeyDown={press}
        onPaste={(event) => { if (event.clipboardData?.files.length) void add(event.clipboardData.files); }}
      />
      {commands.length > 0 && (
        <ul class="commands" aria-label="Commands">
          {commands.map((command) => (
            <li key={command}>
              <button type="button" onClick={() => { write(`/${command} `); field.current?.focus(); }}>/{command}</button>
            </li>
          ))}
        </ul>
      )}
      <div class="actions">
        {isWorking ? (
          <>
            <button type="submit" class="primary" disabled={!text.trim()}>Queue</button>
            <button type="button" disabled={!text.trim()} title="Said into the work that goes on now" onClick={() => send("steer")}>Say now</button>
            <button type="button" class="danger" onClick={onStop}>Interrupt <kbd>Esc</kbd></button>
          </>
        ) : (
          <>
            <button type="submit" class="primary">Send</button>
            <label class="button">
              Attach picture
              <input type="file" accept="image/*" multiple class="unseen" onChange={(event) => event.currentTarget.files && add(event.currentTarget.files)} />
            </label>
          </>
        )}
      </div>
    </form>
  );
}

const MOST = 8;

/** Commands that begin with what was typed. Asked for when a slash is typed, and not before. */
function useCommands(session: string | undefined, text: string): string[] {
  const [known, set] = useState<string[] | undefined>(undefined);
  const typed = /^\/(\S*)$/.exec(text)?.[1];
  const isWanted = typed !== undefined && session !== undefined && known === undefined;
  useEffect(() => {
    // Whoever has no commands types on; that is no reason to complain.
    if (isWanted) void api.commands(session).then(set).catch(() => set([]));
  }, [isWanted, session]);
  if (typed === undefined) return [];
  return (known ?? []).filter((command) => command.startsWith(typed)).slice(0, MOST);
}

async function picture(file: File): Promise<Picture> {
  if (file.size > LARGEST) throw new Error(`${file.name} is larger than 5 MB; make it smaller first.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return { mime: file.type, data: btoa(text) };
}
