// The pictures in the README, made from real conversations with the offline model and with one that has a script:
//
//     OSTLER_PROGRAM=../target/debug/ostler node e2e/pictures.mjs ../docs/pictures

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Visitor, launch } from "./browser.mjs";
import { Model, lastSaid } from "./model.mjs";
import { Server } from "./server.mjs";

const folder = process.argv[2];
if (!folder) throw new Error("say where the pictures go");
mkdirSync(folder, { recursive: true });

const PLAN = "## Faster start\n\n1. Measure where the time goes: `cargo xtask bench start`\n2. Read settings only when they are used\n3. A test that counts the files that are opened";
const ANSWER = "The check is in `open`: a name with `..` in it is refused before the file is touched.\n\n```rust\nfn open(name: &str) -> io::Result<File> {\n    // Nothing outside of the folder.\n    ensure_below(ROOT, name)?;\n    File::open(Path::new(ROOT).join(name))\n}\n```\n\n| case | before | now |\n|---|---|---|\n| `a.txt` | opened | opened |\n| `../a.txt` | opened | refused |";

function script(asked) {
  const said = lastSaid(asked);
  if (said.startsWith("result:")) return ANSWER;
  if (said.includes("plan")) return { thinking: "I look around first.", calls: [{ name: "ExitPlanMode", input: { plan: PLAN } }] };
  if (said.includes("test")) return { text: "I add the test first.", calls: [{ name: "Bash", input: { command: "mkdir -p tests && touch tests/names.rs", description: "Make a file for the tests" } }] };
  return { thinking: "Where are names checked?", text: "I look for the place.", calls: [{ name: "Grep", input: { pattern: "fn open" } }, { name: "Read", input: { file_path: "README.md" } }] };
}

const model = await new Model(script).start();
const server = await new Server({ model }).start();
const browser = await launch();
const take = (visitor, name) => visitor.page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled" });
const come = async (options) => (await Visitor.come(browser, server, { viewport: { width: 1100, height: 700 }, ...options })).enter();

const desk = await come({ colorScheme: "light" });
await desk.say("may a name lead out of the folder?");
await desk.page.getByText("refused before").waitFor();
await desk.rest();
await desk.say("write a test for it");
await desk.card().waitFor();
await desk.page.locator(".code, pre code .hljs-keyword").first().waitFor();
await take(desk, "chat");

const phone = await come({ viewport: { width: 390, height: 760 }, colorScheme: "dark", isMobile: true, hasTouch: true });
await phone.page.getByLabel("How it works").selectOption("plan");
await phone.say("plan how it starts faster");
await phone.card(/plan/).waitFor();
await phone.go("#/inbox");
await phone.card().waitFor();
await take(phone, "inbox");

for (const [place, name, theme] of [["usage", "usage", "light"], ["sessions", "sessions", "light"], ["tasks", "tasks", "dark"]]) {
  const visitor = await come({ colorScheme: theme });
  await visitor.go(`#/${place}`);
  await visitor.page.waitForLoadState("networkidle");
  await take(visitor, name);
}

await browser.close();
await server.end();
await model.end();
