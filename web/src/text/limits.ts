import type { Sandbox } from "../types";

/** The limits of a sandbox, each with what enforces it. */
export function limitsOf({ limits, limitsBy }: Pick<Sandbox, "limits" | "limitsBy">): string[] {
  const of = (prefix: string, all: Sandbox["limits"]): string[] =>
    Object.entries(all).flatMap(([key, most]) => {
      const name = prefix + key;
      if (most === null) return [];
      if (typeof most === "object") return of(`${name}.`, most);
      const by = limitsBy?.[name];
      return [by ? `${name} ${most} (${by})` : `${name} ${most}`];
    });
  return of("", limits);
}
