// The arguments of a call as text: all of them, whatever the tool is.

import type { Input } from "./summary";
import { visible } from "./hidden";

/** Arguments that a card draws in its own way; all others are listed. */
const DRAWN: Record<string, string[]> = {
  Bash: ["command"],
  Edit: ["file_path", "old_string", "new_string"],
  Write: ["file_path", "content"],
  ExitPlanMode: ["plan"],
};

/** Whether the card draws this call in its own way. If a part of it is not text, everything is listed instead. */
export function isDrawn(tool: string, input: Input): boolean {
  const names = DRAWN[tool] ?? [];
  return names.length > 0 && names.every((name) => typeof input[name] === "string");
}

/** The arguments that are not drawn, as JSON in which every character is visible. May be empty. */
export function listed(tool: string, input: Input): string {
  const drawn = isDrawn(tool, input) ? DRAWN[tool]! : [];
  const rest = Object.entries(input).filter(([name]) => !drawn.includes(name));
  return rest.length === 0 ? "" : visible(JSON.stringify(Object.fromEntries(rest), null, 2));
}
