// The arguments of a call as text: all of them, whatever the tool is.

import type { Input } from "./summary";
import { visible } from "./hidden";

/** What a card draws in a way of its own; everything else is listed. */
const DRAWN: Record<string, string[]> = {
  Bash: ["command"],
  Edit: ["file_path", "old_string", "new_string"],
  Write: ["file_path", "content"],
  ExitPlanMode: ["plan"],
};

/** Whether the card draws this call in a way of its own. Where a part of that is not text, all of it is listed instead. */
export function isDrawn(tool: string, input: Input): boolean {
  const names = DRAWN[tool] ?? [];
  return names.length > 0 && names.every((name) => typeof input[name] === "string");
}

/** The arguments that are not drawn, as JSON in which every character is visible. Empty if there is none. */
export function listed(tool: string, input: Input): string {
  const drawn = isDrawn(tool, input) ? DRAWN[tool]! : [];
  const rest = Object.entries(input).filter(([name]) => !drawn.includes(name));
  return rest.length === 0 ? "" : visible(JSON.stringify(Object.fromEntries(rest), null, 2));
}
