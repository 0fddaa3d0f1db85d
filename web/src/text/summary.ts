// A tool call in one line that can be trusted: nothing in it can turn the text around or hide a part of it.

const TELLING: Record<string, string[]> = {
  Bash: ["description", "command"],
  Read: ["file_path"],
  Write: ["file_path"],
  Edit: ["file_path"],
  NotebookEdit: ["notebook_path"],
  WebFetch: ["url"],
  WebSearch: ["query"],
  Glob: ["pattern"],
  Grep: ["pattern"],
  Agent: ["description", "prompt"],
  Task: ["description", "prompt"],
  Skill: ["skill", "command"],
};

export type Input = Record<string, unknown>;

/** The arguments, as far as they have come. */
export function parsed(args: string): Input | undefined {
  try {
    const value: unknown = JSON.parse(args);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Input) : undefined;
  } catch {
    return undefined;
  }
}

export function summary(tool: string, input: Input | undefined): string {
  if (!input) return "";
  const names = TELLING[tool] ?? Object.keys(input);
  const said = names.map((name) => input[name]).find((it) => typeof it === "string" && it !== "");
  if (typeof said === "string") return harmless(said);
  return Object.keys(input).length === 0 ? "" : harmless(JSON.stringify(input));
}

/** Characters that show nothing, or change how others are shown, are shown as what they are: out of place. */
export function harmless(text: string): string {
  const line = text.replaceAll("\n", " ⏎ ");
  const shown = line.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
  return shown.length > 300 ? `${shown.slice(0, 300)}…` : shown;
}

export function str(value: unknown): string {
  return typeof value === "string" ? value : "";
}
