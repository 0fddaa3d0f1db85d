// A tool call in one trustworthy line: no character in it can reverse or hide text.

import { visible } from "./hidden";

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

/** The arguments received so far. */
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

/** One line, in which every character is what it looks like. */
export function harmless(text: string): string {
  const shown = visible(text.replaceAll("\n", " ⏎ ").replaceAll("\t", " "));
  return shown.length > 300 ? `${shown.slice(0, 300)}…` : shown;
}

export function str(value: unknown): string {
  return typeof value === "string" ? value : "";
}
