import { useState } from "preact/hooks";
import { ApiError, api } from "../api";
import { complain } from "../state/app";
import { go } from "../state/route";
import type { Skill, SkillInput } from "../types";
import { read, shownDefault } from "./fields";

/** A form for the parameters of a skill. Invalid values are reported at their fields, by the page or by the server. */
export function TaskForm({ skill, onDone }: { skill: Skill; onDone: () => void }) {
  const [values, set] = useState<Record<string, string>>(() =>
    Object.fromEntries(skill.inputs.map((input) => [input.name, shownDefault(input)])),
  );
  const [prompt, write] = useState("");
  const [problems, tell] = useState<Record<string, string>>({});
  const [isBusy, busy] = useState(false);

  const run = async (event: Event) => {
    event.preventDefault();
    const { given, wrong } = read(skill.inputs, values);
    if (!prompt.trim()) wrong[PROMPT] = "Enter a prompt.";
    tell(wrong);
    const first = Object.keys(wrong)[0];
    if (first !== undefined) return document.getElementById(`input-${first}`)?.focus();
    busy(true);
    try {
      const body = { name: prompt.split("\n")[0]!.slice(0, 80), agentId: skill.id, taskType: "skill", userPrompt: prompt, inputValues: given };
      const task = await api.executeTask((await api.createTask(body)).id);
      onDone();
      if (task.execution) go("chat", task.execution.session);
    } catch (error) {
      const name = error instanceof ApiError && error.field?.match(/^inputValues\.(.+)$/)?.[1];
      if (name) {
        tell({ [name]: (error as ApiError).message });
        document.getElementById(`input-${name}`)?.focus();
      } else complain(error);
    } finally {
      busy(false);
    }
  };

  return (
    <form class="task" onSubmit={run} noValidate>
      <p>{skill.description}</p>
      {skill.tools && <p class="hint">It has the tools {skill.tools.join(", ")}.</p>}
      {skill.inputs.map((input) => (
        <Field
          key={input.name} input={input} value={values[input.name] ?? ""} problem={problems[input.name]}
          onInput={(value) => set({ ...values, [input.name]: value })}
        />
      ))}
      <div class="field">
        <label for={`input-${PROMPT}`}>Prompt <span class="hint">(required)</span></label>
        <textarea id={`input-${PROMPT}`} rows={3} value={prompt} aria-invalid={PROMPT in problems} aria-describedby={`problem-${PROMPT}`}
          onInput={(event) => write(event.currentTarget.value)} />
        <p class="problem" id={`problem-${PROMPT}`} role="alert">{problems[PROMPT]}</p>
      </div>
      <div class="actions"><button type="submit" class="primary" disabled={isBusy}>Run</button></div>
    </form>
  );
}

/** The field that every task has. */
const PROMPT = "the-prompt";

interface FieldProps {
  input: SkillInput;
  value: string;
  problem?: string | undefined;
  onInput: (value: string) => void;
}

function Field({ input, value, problem, onInput }: FieldProps) {
  const id = `input-${input.name}`;
  const common = {
    id, value, "aria-invalid": problem !== undefined, "aria-describedby": `about-${input.name} problem-${input.name}`,
    onInput: (event: Event) => onInput((event.currentTarget as HTMLInputElement).value),
  };
  return (
    <div class="field">
      <label for={id}>{input.name} {input.required && <span class="hint">(required)</span>}</label>
      {input.allowed?.length || input.type === "boolean" ? (
        <select {...common}>
          <option value="">–</option>
          {(input.allowed?.length ? input.allowed : [true, false]).map((it) => (
            <option key={String(it)} value={String(it)}>{String(it)}</option>
          ))}
        </select>
      ) : input.type === "array" || input.type === "object" ? (
        <textarea rows={3} {...common} />
      ) : (
        <input type="text" inputMode={input.type === "integer" ? "numeric" : input.type === "number" ? "decimal" : "text"} {...common} />
      )}
      <p class="hint" id={`about-${input.name}`}>{input.description}{input.type && input.type !== "string" && ` (${input.type})`}</p>
      <p class="problem" id={`problem-${input.name}`} role="alert">{problem}</p>
    </div>
  );
}
