import { type Input, str } from "../text/summary";
import { Clip } from "./Clip";
import { Diff } from "./Diff";
import { Markdown } from "./Markdown";

/** What a call is about to do, exactly: a command, a change to a file, or its arguments. */
export function ToolInput({ name, input }: { name: string; input: Input }) {
  const path = str(input.file_path);
  if (name === "Edit" && path) {
    return (
      <>
        <Diff path={path} before={str(input.old_string)} after={str(input.new_string)} />
        {input.replace_all === true && <p class="hint">Everywhere in the file.</p>}
      </>
    );
  }
  if (name === "Write" && path) return <Diff path={path} before="" after={str(input.content)} />;
  if (name === "Bash") {
    return (
      <>
        <pre class="command" tabIndex={0} aria-label="Command">{str(input.command)}</pre>
        {input.run_in_background === true && <p class="hint">In the background.</p>}
      </>
    );
  }
  if (name === "ExitPlanMode") return <Markdown text={str(input.plan)} done />;
  if (Object.keys(input).length === 0) return <p class="hint">Without arguments.</p>;
  return <Clip label={`Arguments of ${name}`} text={JSON.stringify(input, null, 2)} />;
}
