import { structuredPatch } from "diff";
import { useMemo } from "preact/hooks";
import { visible } from "../text/hidden";

/** What would change in a file, line by line; every character is what it looks like. */
export function Diff(call: { path: string; before: string; after: string }) {
  const [path, before, after] = [visible(call.path), visible(call.before), visible(call.after)];
  const hunks = useMemo(() => structuredPatch(path, path, before, after, "", "", { context: 3 }).hunks, [path, before, after]);
  return (
    <figure class="diff">
      <figcaption>{path}</figcaption>
      <pre tabIndex={0} aria-label={`Changes to ${path}`}>
        {hunks.map((hunk, index) => (
          <code key={index}>
            {hunks.length > 1 && <span class="hunk">@@ {hunk.oldStart} @@{"\n"}</span>}
            {hunk.lines.filter((line) => line[0] !== "\\").map((line, at) => (
              <span key={at} class={line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : "same"}>
                {line}
                {"\n"}
              </span>
            ))}
          </code>
        ))}
      </pre>
    </figure>
  );
}
