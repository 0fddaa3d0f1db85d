import { api } from "../api";
import type { Approval, Question } from "../types";
import { CardHead } from "./ApprovalCard";
import { useAnswer } from "./decide";
import { useDraft } from "./drafts";

interface Chosen {
  labels: string[];
  other: string;
}

const NOTHING: Chosen = { labels: [], other: "" };

/** The answer: chosen options and free text. */
function answered({ labels, other }: Chosen): string[] {
  return other.trim() ? [...labels, other.trim()] : labels;
}

/** Questions of the agent, one tab each, sent together when all are answered. */
export function QuestionCard({ approval, isInline }: { approval: Approval; isInline: boolean }) {
  const questions = Array.isArray(approval.input.questions) ? (approval.input.questions as Question[]) : [];
  const [tab, open] = useDraft(approval.id, "tab", 0);
  const [chosen, choose] = useDraft<Record<string, Chosen>>(approval.id, "chosen", {});
  const { isSent, answer } = useAnswer(approval.id);
  const of = (question: Question) => chosen[question.question] ?? NOTHING;
  const missing = questions.findIndex((question) => answered(of(question)).length === 0);
  const current = questions[tab];

  const send = (body: Parameters<typeof api.answer>[1]) =>
    answer(() => api.answer(approval.id, { ...body, digest: approval.digest }));
  const submit = (event: Event) => {
    event.preventDefault();
    if (missing >= 0) return open(missing);
    const answers = Object.fromEntries(questions.map((it) => [it.question, answered(of(it))]));
    void send({ answers });
  };

  return (
    <section class="card question" role="group" data-card={approval.id} tabIndex={0} aria-label="The agent has a question" aria-busy={isSent}>
      <CardHead approval={approval} isInline={isInline} title={questions.length > 1 ? "The agent has questions" : "The agent has a question"} />
      <form onSubmit={submit}>
        {questions.length > 1 && (
          <div class="tabs" role="tablist" aria-label="Questions">
            {questions.map((question, index) => (
              <button
                key={index} type="button" role="tab" id={`tab-${approval.id}-${index}`} aria-selected={index === tab}
                aria-controls={`panel-${approval.id}`} onClick={() => open(index)}
              >
                {question.header ?? `Question ${index + 1}`}{answered(of(question)).length > 0 && " ✓"}
              </button>
            ))}
          </div>
        )}
        {current && (
          <div id={`panel-${approval.id}`} {...(questions.length > 1 ? { role: "tabpanel", "aria-labelledby": `tab-${approval.id}-${tab}` } : {})}>
            <Choice
              key={tab} name={`${approval.id}-${tab}`} question={current} chosen={of(current)}
              choose={(it) => choose({ ...chosen, [current.question]: it })}
            />
          </div>
        )}
        <div class="actions">
          <button type="submit" class="primary" disabled={isSent || questions.length === 0}>
            {missing >= 0 && missing !== tab ? "Next question" : "Send"}
          </button>
          <button type="button" class="danger" disabled={isSent} onClick={() => send({ declined: true })}>Decline</button>
        </div>
      </form>
    </section>
  );
}

interface ChoiceProps {
  name: string;
  question: Question;
  chosen: Chosen;
  choose: (chosen: Chosen) => void;
}

function Choice({ name, question, chosen, choose }: ChoiceProps) {
  const many = question.multiSelect === true;
  const toggle = (label: string) => {
    if (!many) return choose({ labels: [label], other: "" });
    const labels = chosen.labels.includes(label) ? chosen.labels.filter((it) => it !== label) : [...chosen.labels, label];
    choose({ ...chosen, labels });
  };
  const preview = question.options?.find((option) => option.preview && chosen.labels.includes(option.label))?.preview;
  return (
    <fieldset>
      <legend>{question.question}{many && <span class="hint"> (several can be chosen)</span>}</legend>
      {question.options?.map((option) => (
        <label key={option.label} class="option">
          <input
            type={many ? "checkbox" : "radio"} name={name} checked={chosen.labels.includes(option.label)}
            onChange={() => toggle(option.label)}
          />
          <span>
            <b>{option.label}</b>
            {option.description && <span class="hint"> {option.description}</span>}
          </span>
        </label>
      ))}
      <label class="other">
        {question.options?.length ? "Other answer" : "Your answer"}
        <input
          type="text" value={chosen.other}
          onInput={(event) => choose({ labels: many ? chosen.labels : [], other: event.currentTarget.value })}
        />
      </label>
      {preview && <pre class="preview" tabIndex={0} aria-label="Preview">{preview}</pre>}
    </fieldset>
  );
}
