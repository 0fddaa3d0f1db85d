// JSON Patch, as far as to-do lists need it: values added, replaced and removed.

import type { JsonPatchOperation } from "@ag-ui/core";

type Json = Record<string, unknown>;

/** The changed document, or `undefined` if a change cannot be applied. */
export function apply(document: Json, patch: JsonPatchOperation[]): Json | undefined {
  const copy = structuredClone(document);
  for (const operation of patch) {
    const path = operation.path.split("/").slice(1).map(unescape);
    const last = path.pop();
    if (last === undefined) return undefined;
    const place = path.reduce<unknown>((at, key) => (isPlace(at) ? (at as Json)[key] : undefined), copy);
    if (!isPlace(place) || !change(place, last, operation)) return undefined;
  }
  return copy;
}

function isPlace(value: unknown): value is Json | unknown[] {
  return typeof value === "object" && value !== null;
}

function unescape(part: string): string {
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

function change(place: Json | unknown[], key: string, operation: JsonPatchOperation): boolean {
  if (operation.op === "add" || operation.op === "replace") {
    const value = (operation as { value?: unknown }).value;
    if (!Array.isArray(place)) place[key] = value;
    else if (operation.op === "replace") place[Number(key)] = value;
    else place.splice(key === "-" ? place.length : Number(key), 0, value);
    return true;
  }
  if (operation.op !== "remove") return false;
  if (Array.isArray(place)) place.splice(Number(key), 1);
  else delete place[key];
  return true;
}
