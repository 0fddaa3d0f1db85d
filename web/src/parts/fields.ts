// Converts the values of a form to the types of a skill's parameters, or reports errors.

import type { SkillInput } from "../types";

export function shownDefault(input: SkillInput): string {
  if (input.default === undefined) return "";
  return typeof input.default === "string" ? input.default : JSON.stringify(input.default);
}

/** The values, and the errors by field name. */
export function read(inputs: SkillInput[], typed: Record<string, string>): { given: Record<string, unknown>; wrong: Record<string, string> } {
  const given: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  for (const input of inputs) {
    const text = typed[input.name] ?? "";
    if (text.trim() === "") {
      if (input.required) wrong[input.name] = "This is required.";
      continue;
    }
    try {
      given[input.name] = value(input, text);
    } catch (error) {
      wrong[input.name] = (error as Error).message;
    }
  }
  return { given, wrong };
}

function value(input: SkillInput, text: string): unknown {
  const chosen = input.allowed?.find((it) => String(it) === text);
  if (chosen !== undefined) return chosen;
  switch (input.type) {
    case "number":
    case "integer": {
      const number = Number(text);
      if (!Number.isFinite(number)) throw new Error("Enter a number, such as 3.");
      if (input.type === "integer" && !Number.isInteger(number)) throw new Error("Enter a whole number, such as 3.");
      return number;
    }
    case "boolean":
      return text === "true";
    case "array":
      return text.trim().startsWith("[") ? json(text, Array.isArray, "Enter a list: one entry per line.") : lines(text);
    case "object":
      return json(text, (it) => typeof it === "object" && it !== null && !Array.isArray(it), 'This is an object, such as {"a": 1}.');
    default:
      return text;
  }
}

function lines(text: string): string[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean);
}

function json(text: string, fits: (value: unknown) => boolean, words: string): unknown {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error(words);
  }
  if (!fits(found)) throw new Error(words);
  return found;
}
