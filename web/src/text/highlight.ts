// Colours for code. The highlighter and its languages are loaded when there is code to show, and not before.

type Highlighter = { highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string } };

const LANGUAGES: Record<string, () => Promise<{ default: unknown }>> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  css: () => import("highlight.js/lib/languages/css"),
  go: () => import("highlight.js/lib/languages/go"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  python: () => import("highlight.js/lib/languages/python"),
  rust: () => import("highlight.js/lib/languages/rust"),
  sql: () => import("highlight.js/lib/languages/sql"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

const OTHER_NAMES: Record<string, string> = {
  c: "java", cpp: "java", html: "xml", js: "javascript", jsx: "javascript", md: "markdown", py: "python", rs: "rust",
  sh: "bash", shell: "bash", svg: "xml", toml: "yaml", ts: "typescript", tsx: "typescript", yml: "yaml", zsh: "bash",
};

export function languageOf(word: string): string | undefined {
  const name = OTHER_NAMES[word] ?? word;
  return name in LANGUAGES ? name : undefined;
}

const loaded = new Map<string, Promise<Highlighter>>();

function load(language: string): Promise<Highlighter> {
  const known = loaded.get(language);
  if (known) return known;
  const loading = (async () => {
    const [core, grammar] = await Promise.all([import("highlight.js/lib/core"), LANGUAGES[language]!()]);
    core.default.registerLanguage(language, grammar.default as never);
    return core.default as Highlighter;
  })();
  loaded.set(language, loading);
  return loading;
}

/** Longer code is not coloured, because that would block the page. */
const LONGEST = 50_000;

/** Colours all code blocks below an element that name a language and are not coloured yet. */
export async function colour(root: HTMLElement): Promise<void> {
  for (const block of root.querySelectorAll<HTMLElement>('pre > code[class^="language-"]:not([data-coloured])')) {
    const language = languageOf(block.className.slice("language-".length).toLowerCase());
    const code = block.textContent ?? "";
    if (!language || code.length > LONGEST) continue;
    block.dataset.coloured = "";
    const highlighter = await load(language);
    // It may have grown meanwhile; then it is drawn and coloured again.
    if (block.textContent !== code) continue;
    block.innerHTML = highlighter.highlight(code, { language, ignoreIllegals: true }).value;
  }
}
