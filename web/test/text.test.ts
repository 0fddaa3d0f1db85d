import { expect, test } from "vitest";
import { frames } from "../src/agui/sse";
import { isText } from "../src/parts/attach";
import { read } from "../src/parts/fields";
import { Heights } from "../src/parts/heights";
import { taken, typed } from "../src/parts/offers";
import { isLong } from "../src/parts/Clip";
import { isDrawn, listed } from "../src/text/arguments";
import { visible } from "../src/text/hidden";
import { limitsOf } from "../src/text/limits";
import { ago, days, dollars, lasted, tokens } from "../src/text/say";
import { pieces } from "../src/text/pieces";
import { summary } from "../src/text/summary";

test("events are decoded however they are split", () => {
  expect(frames('data: {"a":1}\n\n: keep-alive\n\ndata: {"b"')).toEqual({ data: ['{"a":1}'], rest: 'data: {"b"' });
});

test("a call in one line hides nothing", () => {
  expect(summary("Bash", { command: "ls\nrm x" })).toBe("ls ⏎ rm x");
  expect(summary("Bash", { command: "a\u202eb" })).toBe("a⟨U+202E⟩b");
  expect(summary("Read", { limit: 3, file_path: "a.txt" })).toBe("a.txt");
  expect(summary("mcp__x__y", { a: 1 })).toBe('{"a":1}');
});

// Mutant: a range of HIDDEN left out; `visible` that goes by halves of characters, which misses the tag block.
test("every character that hides or reverses text is shown by its number", () => {
  for (const hidden of ["\u0000", "\u001b", "\r", "\u00a0", "\u00ad", "\u200b", "\u202e", "\u2066", "\ufeff", "\u{e0041}", "\ud800"]) {
    const code = hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    expect(visible(`a${hidden}b`)).toBe(`a⟨U+${code}⟩b`);
  }
  expect(visible("ls é 中 🐴\t\n")).toBe("ls é 中 🐴\t\n");
});

// Mutant: `listed` that leaves out what it does not know.
test("every argument of a call is drawn or listed", () => {
  const bash = { command: "ls", timeout: 5, dangerouslyDisableSandbox: true, unknown: "a\u202eb" };
  expect(isDrawn("Bash", bash)).toBe(true);
  expect(JSON.parse(listed("Bash", bash))).toEqual({ timeout: 5, dangerouslyDisableSandbox: true, unknown: "a⟨U+202E⟩b" });
  expect(listed("Write", { file_path: "a", content: "x" })).toBe("");
  expect(listed("Edit", { file_path: "a", old_string: "x", new_string: "y", replace_all: true })).toContain("replace_all");
  // A value that is not text is not drawn, so it is listed.
  expect(isDrawn("Bash", { command: ["ls"] })).toBe(false);
  expect(listed("Bash", { command: ["ls"] })).toContain("ls");
  expect(listed("mcp__x__y", { a: 1 })).toContain("\"a\": 1");
});

test("a shortened text says so", () => {
  expect([isLong("short"), isLong("x\n".repeat(40)), isLong("x".repeat(7_000))]).toEqual([false, true, true]);
});

test("times and sums are formatted", () => {
  expect([ago(0, 30_000), ago(0, 120_000), ago(0, 3 * 3_600_000), ago(0, 3 * 86_400_000)]).toEqual(["just now", "2 min ago", "3 h ago", "3 d ago"]);
  expect([lasted(20), lasted(1500), lasted(61_000)]).toEqual(["20 ms", "1.5 s", "1 min 1 s"]);
  expect([dollars(0), dollars(0.001), dollars(1.5)]).toEqual(["$0", "< $0.01", "$1.50"]);
});

test("parameters are converted as declared, or reported at their fields", () => {
  const inputs = [
    { name: "who", required: true, type: "string" as const },
    { name: "times", required: false, type: "integer" as const },
    { name: "tags", required: false, type: "array" as const },
    { name: "size", required: false, allowed: [1, 2] },
  ];
  expect(read(inputs, { who: "Ann", times: "2", tags: "a\n\nb", size: "2" }).given).toEqual({ who: "Ann", times: 2, tags: ["a", "b"], size: 2 });
  expect(Object.keys(read(inputs, { times: "2.5" }).wrong)).toEqual(["who", "times"]);
});

test("heights of ten thousand rows add up, measured or estimated", () => {
  const heights = new Heights();
  heights.list(Array.from({ length: 10_000 }, (_, index) => String(index)));
  expect(heights.before(10_000)).toBe(900_000);
  expect(heights.at(450)).toBe(5);
  expect(heights.set("2", 190)).toBe(true);
  expect(heights.set("2", 190)).toBe(false);
  expect(heights.before(3)).toBe(370);
  expect([heights.at(369), heights.at(370)]).toEqual([2, 3]);
  expect(heights.after(9_999)).toBe(90);
  heights.list(["2", "x"]);
  expect(heights.before(2)).toBe(280);
});

test("the word at the cursor is completed, and nothing else changes", () => {
  expect(typed("/co", 3)).toEqual({ kind: "command", word: "co", from: 0 });
  expect(typed("see /co", 7)).toBeUndefined();
  expect(typed("a@b.org", 7)).toBeUndefined();
  const now = typed("read @src/ma please", 12)!;
  expect(now).toEqual({ kind: "file", word: "src/ma", from: 5 });
  expect(taken("read @src/ma please", now, { text: "@src/main.rs" })).toEqual({ text: "read @src/main.rs please", cursor: 18 });
  // No space after a folder, so that its contents can be completed.
  expect(taken("@sr", typed("@sr", 3)!, { text: "@src/" })).toEqual({ text: "@src/", cursor: 5 });
});

test("text files are recognised by their content", () => {
  expect(isText(new TextEncoder().encode("fn main() { // ü }"))).toBe(true);
  expect(isText(new Uint8Array([0x80, 0x81]))).toBe(false);
  expect(isText(new Uint8Array([65, 0]))).toBe(false);
});

test("large numbers of tokens are abbreviated", () => {
  expect([999, 1_200, 99_950, 250_000, 1_000_000, 1_250_000].map(tokens)).toEqual(["999", "1.2k", "100.0k", "250k", "1M", "1.3M"]);
});

test("days are counted across months", () => {
  expect(days("2026-02-27", "2026-03-01")).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
});

test("a growing text is split between independent parts", () => {
  const parts = ["# Title\n\n", "One\ntwo\n\n", "1. a\n\n2. b\n\n   more of b\n\n", "```rust\nfn a() {}\n\nfn b() {}\n```\n\n", "~~~~\n```\n\nx\n~~~~\n\n", "last"];
  expect(pieces(parts.join(""))).toEqual(parts);
  // At every length nothing is lost and complete parts stay unchanged; that a list continues is known a little later.
  const text = parts.join("");
  for (let end = 0; end <= text.length; end += 1) {
    const now = pieces(text.slice(0, end));
    expect(now.join("")).toBe(text.slice(0, end));
    expect(now.slice(0, -2)).toEqual(parts.slice(0, Math.max(0, now.length - 2)));
  }
});

test("limits of a sandbox are listed with those of the session and what enforces them", () => {
  const limits = { processes: 40, memory: null, session: { memory: 100, disk: null } };
  expect(limitsOf({ limits, limitsBy: { "session.memory": "supervisor" } })).toEqual(["processes 40", "session.memory 100 (supervisor)"]);
});
