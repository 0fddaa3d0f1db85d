// The screenshots in the README, made from real conversations with a scripted model: `cargo xtask web --pictures`

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
  const file = `${/\/[\w/.-]+\/workspace/.exec(JSON.stringify(asked.system))?.[0]}/README.md`;
  if (said.startsWith("result:")) return ANSWER;
  if (said.includes("plan")) return { thinking: "I look around first.", calls: [{ name: "ExitPlanMode", input: { plan: PLAN } }] };
  if (said.includes("test")) return { text: "I add the test first.", calls: [{ name: "Bash", input: { command: "cargo test names -- --nocapture", description: "Run the tests of names" } }] };
  if (said.includes("describe")) return { text: "I describe it.", calls: [{ name: "Edit", input: { file_path: file, old_string: "Nothing yet.", new_string: "Opens files by name.\n\nNames that lead out of the folder are refused." } }] };
  return { thinking: "Where are names checked?", text: "I look for the place.", calls: [{ name: "Grep", input: { pattern: "fn open" } }, { name: "Read", input: { file_path: "README.md" } }] };
}

const model = await new Model(script).start();
const server = await new Server({ model }).start();
const browser = await launch();
const take = (visitor, name) => visitor.page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled" });
const come = async (options) => (await Visitor.come(browser, server, { viewport: { width: 1100, height: 700 }, ...options })).enter();

const desk = await come({ colorScheme: "light" });
await desk.ask("may a name lead out of the folder?");
await desk.page.locator("pre code .hljs-keyword").first().waitFor();
await desk.say("describe that in the README");
await desk.card().getByRole("button", { name: /Allow once/ }).click();
await desk.page.locator('.tool.done[data-tool="Edit"]').waitFor();
await desk.rest();
const session = await desk.page.evaluate(() => location.hash);
await desk.say("write a test for it");
await desk.card().waitFor();
await take(desk, "chat");

const pocket = await come({ viewport: { width: 390, height: 760 }, colorScheme: "dark", isMobile: true, hasTouch: true });
await pocket.page.getByLabel("Permission mode").selectOption("plan");
await pocket.say("plan how it starts faster");
await pocket.card(/plan/).waitFor();
await pocket.go("#/inbox");
await pocket.card().waitFor();
await take(pocket, "inbox");

const about = await come({ colorScheme: "light", viewport: { width: 1100, height: 900 } });
await about.go(session.replace("chat", "about"));
await about.page.getByText("README.md", { exact: true }).click();
await about.page.getByRole("list", { name: "Time by tool" }).waitFor();
await take(about, "session");

const usage = await come({ colorScheme: "dark" });
await usage.go("#/usage");
await usage.page.getByLabel("Days").selectOption("7");
await usage.page.getByRole("img", { name: /Tokens per day/ }).waitFor();
await take(usage, "usage");

await browser.close();
await server.end();
await model.end();
