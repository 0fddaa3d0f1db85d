import { isDrawn, listed } from "../text/arguments";
import { visible } from "../text/hidden";
import { type Input, str } from "../text/summary";
import { Clip } from "./Clip";
import { Diff } from "./Diff";
import { Markdown } from "./Markdown";

interface Props {
  name: string;
  input: Input;
  /** A shortened part was expanded. */
  onOpen?: () => void;
}

/** Exactly what a call would do: a command, a change to a file, and every argument that is not drawn. */
export function ToolInput({ name, input, onOpen }: Props) {
  const rest = listed(name, input);
  if (Object.keys(input).length === 0) return <p class="hint">No arguments.</p>;
  return (
    <>
      {isDrawn(name, input) && <Drawn name={name} input={input} />}
      {rest !== "" && <Clip label={`Arguments of ${name}`} text={rest} onOpen={onOpen} />}
    </>
  );
}

function Drawn({ name, input }: { name: string; input: Input }) {
  switch (name) {
    case "Edit":
      return <Diff path={str(input.file_path)} before={str(input.old_string)} after={str(input.new_string)} />;
    case "Write":
      return <Diff path={str(input.file_path)} before="" after={str(input.content)} />;
    case "Bash":
      return <pre class="command" tabIndex={0} aria-label="Command">{visible(str(input.command))}</pre>;
    default:
      return <Markdown text={visible(str(input.plan))} done />;
  }
}
