import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { complain, say } from "../state/app";
import type { ChangedFile, Rewound, RunChanges } from "../types";
import { moment } from "../text/say";

/** Changed files, prompt by prompt, and rewinding. */
export function Changes({ id }: { id: string }) {
  const [found, set] = useState<{ runs: RunChanges[]; added: number; removed: number } | undefined>(undefined);
  const load = () => void api.changes(id).then(set).catch(complain);
  useEffect(load, [id]);
  const runs = found?.runs.filter((run) => run.files.length > 0) ?? [];
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">Changes to files {found && runs.length > 0 && <Count added={found.added} removed={found.removed} />}</h2>
      {found === undefined && <p class="note" role="status">Loading…</p>}
      {found && runs.length === 0 && <p class="hint">No changed files yet. Files that shell commands change are not listed.</p>}
      <ol class="changes">
        {runs.map((run) => <OfRun key={run.run} id={id} run={run} onDone={load} />)}
      </ol>
    </section>
  );
}

function OfRun({ id, run, onDone }: { id: string; run: RunChanges; onDone: () => void }) {
  const [plan, show] = useState<Rewound | undefined>(undefined);
  const look = () => void api.rewind(id, run.run, true).then(show).catch(complain);
  const rewind = async () => {
    try {
      const { files } = await api.rewind(id, run.run, false);
      show(undefined);
      say(`${files.length === 1 ? "1 file is" : `${files.length} files are`} restored.`);
      onDone();
    } catch (error) {
      complain(error);
    }
  };
  return (
    <li class="card">
      <header>
        <h3>{run.prompt}</h3>
        <span class="hint">{moment(run.at)}</span>
      </header>
      {run.files.map((file, index) => <File key={index} file={file} />)}
      {run.cut && <p class="hint">More files were changed than are listed.</p>}
      {plan ? (
        <div role="group" aria-label="Rewind files">
          <p>These files will be restored to their state before this prompt. The conversation stays unchanged:</p>
          <ul class="plain">{plan.files.map((file) => <li key={file}><code>{file}</code></li>)}</ul>
          <div class="actions">
            <button type="button" class="danger" onClick={() => void rewind()}>Rewind files</button>
            <button type="button" onClick={() => show(undefined)}>Cancel</button>
          </div>
        </div>
      ) : <div class="actions"><button type="button" onClick={look}>Rewind to before this prompt…</button></div>}
    </li>
  );
}

function File({ file }: { file: ChangedFile }) {
  const name = <><code>{file.path}</code> <span class="hint">{file.kind}</span> <Count added={file.added} removed={file.removed} /></>;
  if (!file.diff) return <p>{name}</p>;
  return (
    <details class="diff">
      <summary>{name}</summary>
      <pre tabIndex={0} aria-label={`Changes to ${file.path}`}>
        <code>
          {file.diff.replace(/\n$/, "").split("\n").map((line, index) => (
            <span key={index} class={line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : line.startsWith("@@") ? "hunk" : "same"}>{line}{"\n"}</span>
          ))}
        </code>
      </pre>
      {file.cut && <p class="hint">The diff is truncated.</p>}
    </details>
  );
}

function Count({ added, removed }: { added: number; removed: number }) {
  return <span class="count"><span class="more">+{added}</span> <span class="less">−{removed}</span></span>;
}
