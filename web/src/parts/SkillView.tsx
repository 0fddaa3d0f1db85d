import { useState } from "preact/hooks";
import { api } from "../api";
import { complain } from "../state/app";
import type { SkillText } from "../types";
import { Markdown } from "./Markdown";

/** The text of a skill, to read before running it. */
export function SkillView({ id }: { id: string }) {
  const [skill, set] = useState<SkillText | undefined>(undefined);
  const load = (event: Event) => {
    if ((event.currentTarget as HTMLDetailsElement).open && !skill) void api.skill(id).then(set).catch(complain);
  };
  return (
    <details class="skill" onToggle={load}>
      <summary>Skill text</summary>
      {skill && (
        <>
          <div class="wide" tabIndex={0} role="region" aria-label="Skill metadata">
            <table>
              <tbody>
                {Object.entries(skill.frontMatter).map(([name, value]) => (
                  <tr key={name}><th scope="row">{name}</th><td>{typeof value === "string" ? value : <code>{JSON.stringify(value)}</code>}</td></tr>
                ))}
              </tbody>
            </table>
          </div>
          <Markdown text={skill.body} done />
        </>
      )}
    </details>
  );
}
