import { say } from "../state/app";

export function Copy({ text, label }: { text: string; label: string }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied.");
    } catch {
      say("This browser does not allow copying. Select the text and copy it yourself.", "bad");
    }
  };
  return (
    <button type="button" class="quiet" aria-label={label} title={label} onClick={copy}>
      Copy
    </button>
  );
}
