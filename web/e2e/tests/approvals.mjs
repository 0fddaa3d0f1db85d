import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { lastSaid } from "../model.mjs";

const has = (server, name) => existsSync(join(server.workspace, name));
const allow = (scope) => ({ name: scope });

/** The commands that are tried at every entry point and need no repository; each would create `pwned`. */
const HOSTILE = readFileSync(new URL("../../../crates/ostler-testkit/src/hostile/commands.txt", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#") && !/git|%n/.test(line))
  .map((line) => line.replaceAll("PWNED", "pwned"));
let tried = 0;

export default {
  async "a denial with a reason reaches the agent and nothing is written"({ server, visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt');
    await visitor.card().getByRole("button", allow(/Deny/)).click();
    await visitor.page.getByLabel(/Reason for the agent/).fill("not this file");
    await visitor.page.getByRole("button", { name: "Deny", exact: true }).click();
    await visitor.rest();
    const tool = visitor.page.locator('.tool[data-tool="Write"]');
    await tool.locator("summary").click();
    await tool.getByText(/not this file/).waitFor();
    assert.equal(has(server, "a.txt"), false);
  },

  // The sandbox never connects to this machine, so a host that may be reached shows as one that leads here.
  "a program in the sandbox asks before it reaches a new host": {
    settings: { sandbox: { enabled: true } },
    async run({ visit }) {
      const visitor = await visit();
      const command = "curl -sS --noproxy '' http://localhost/x; exit 1";
      for (const [answers, reason] of [[["Allow once"], /it leads to/], [["Deny…", "Deny"], /the user denied it/]]) {
        await visitor.say(`run \`${command}\``);
        const card = visitor.card();
        await card.getByRole("heading", { name: "Connect to localhost?" }).waitFor();
        await card.getByText(/The command .* wants to connect to localhost, port 80/).waitFor();
        await card.getByRole("button", { name: /Always allow/ }).waitFor();
        for (const answer of answers) await card.getByRole("button", { name: new RegExp(`^${answer}( |$)`) }).first().click();
        await visitor.rest();
        const tool = visitor.page.locator('.tool[data-tool="Bash"]').last();
        await tool.locator("summary").click();
        await tool.getByText(reason).first().waitFor();
      }
    },
  },

  async "deny and stop ends the run"({ server, visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt, then write "y" to b.txt');
    await visitor.card().getByRole("button", allow(/Deny/)).click();
    await visitor.page.getByRole("button", { name: "Deny and stop" }).click();
    await visitor.rest();
    assert.equal(await visitor.card().count(), 0);
    assert.equal(has(server, "a.txt") || has(server, "b.txt"), false);
  },

  async "an always rule allows the call in this folder until it is revoked"({ server, visit }) {
    const visitor = await visit();
    await visitor.say("run `touch a.txt`");
    const rule = visitor.card().getByLabel(/grant this rule/);
    assert.equal(await rule.inputValue(), "Bash(touch a.txt)");
    await rule.selectOption("Bash(touch:*)");
    await visitor.card().getByRole("button", allow(/Always/)).click();
    await visitor.rest();
    assert.ok(has(server, "a.txt"));
    await visitor.go("#/chat");
    await visitor.page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
    await visitor.ask("run `touch b.txt`");
    assert.ok(has(server, "b.txt"), "without approval");
    await visitor.say("run `touch c.txt; mkdir d`");
    await visitor.card().waitFor();
    assert.equal(has(server, "c.txt"), false, "more than the rule grants");
    await visitor.go("#/settings");
    const row = visitor.page.getByRole("row", { name: /touch/ });
    await row.getByText(/sessions in/).waitFor();
    await row.getByText("just now", { exact: true }).waitFor();
    await row.getByRole("button", { name: "Revoke" }).click();
    await visitor.page.getByText("No rules yet").waitFor();
    await visitor.go("#/chat");
    await visitor.page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
    await visitor.say("run `touch e.txt`");
    await visitor.card().waitFor();
  },

  // Seen to fail with an engine that allows commands that require approval.
  "a hostile command shows a card and nothing runs": {
    script: () => (tried < HOSTILE.length ? { calls: [{ name: "Bash", input: { command: HOSTILE[tried++] } }] } : "done"),
    async run({ server, visit }) {
      const visitor = await visit();
      await visitor.say("go");
      for (const command of HOSTILE) {
        await visitor.card().getByLabel("Command", { exact: true }).getByText(command, { exact: true }).waitFor();
        assert.equal(has(server, "pwned"), false, command);
        const { items } = await server.call("GET", "/api/approvals");
        assert.equal(items.length, 1, command);
        await server.call("POST", `/api/approvals/${items[0].id}/decision`, { approved: false });
      }
      await visitor.rest();
      assert.equal(has(server, "pwned"), false);
    },
  },

  // Seen to fail with `isRead` that begins as true.
  "nothing can be allowed before a shortened text was shown completely": {
    script: (asked) => {
      const description = "long ".repeat(2_000);
      return lastSaid(asked).startsWith("result:")
        ? "done"
        : { calls: [{ name: "Bash", input: { command: "touch a.txt", description } }] };
    },
    async run({ server, visit }) {
      const visitor = await visit();
      await visitor.say("go");
      const card = visitor.card();
      await card.getByText("Show all lines before you allow this.").waitFor();
      for (const name of [/Allow once/, /Allow for this session/, /Always/]) {
        assert.equal(await card.getByRole("button", { name }).isEnabled(), false, `${name}`);
      }
      assert.ok(await card.getByRole("button", allow(/Deny/)).isEnabled(), "denying does not require reading it all");
      await card.focus();
      for (const key of ["y", "s", "a"]) await visitor.page.keyboard.press(key);
      assert.equal((await server.call("GET", "/api/approvals")).items.length, 1, "keys allow nothing either");
      await card.getByRole("button", { name: /Show all \d+ lines/ }).click();
      await card.getByRole("button", { name: /Allow once/ }).click();
      await visitor.rest();
      assert.ok(has(server, "a.txt"));
    },
  },

  async "a write never offers the whole tool"({ visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt');
    await visitor.card().waitFor();
    const rules = visitor.card().getByLabel(/grant this rule/);
    const offered = (await rules.count()) === 0 ? [] : await rules.locator("option").allTextContents();
    assert.ok(offered.every((rule) => rule.includes("(")), `${offered}`);
  },

  "characters that reverse text and all arguments are on the card": {
    script: (asked) =>
      lastSaid(asked).startsWith("result:")
        ? "done"
        : { calls: [{ name: "Bash", input: { command: "touch a\u202etxt.b", timeout: 4321 } }] },
    async run({ visit }) {
      const visitor = await visit();
      await visitor.say("go");
      await visitor.card().getByLabel("Command", { exact: true }).getByText("touch a⟨U+202E⟩txt.b").waitFor();
      await visitor.card().getByText("4321").waitFor();
    },
  },

  "a rule for a whole tool is granted by a second click": {
    script: (asked) =>
      lastSaid(asked).startsWith("result:") ? "done" : { calls: [{ name: "WebSearch", input: { query: "horses" } }] },
    async run({ server, visit }) {
      const visitor = await visit();
      await visitor.say("go");
      await visitor.card().getByRole("button", allow(/Allow for this session/)).click();
      assert.deepEqual((await server.call("GET", "/api/rules")).items, []);
      await visitor.card().getByText(/allows every use of the tool/).waitFor();
      await visitor.card().getByRole("button", { name: "Allow every use" }).click();
      await visitor.page.waitForFunction(() => !document.querySelector(".card.approval"));
      assert.deepEqual((await server.call("GET", "/api/rules")).items.map((it) => it.rule), ["WebSearch"]);
    },
  },

  "a plan is rejected with a reason, and then approved": {
    script: (asked) => {
      const said = lastSaid(asked);
      const plan = (text) => ({ calls: [{ name: "ExitPlanMode", input: { plan: text } }] });
      if (!said.startsWith("result:")) return plan("# The plan\n\n1. Write **a.txt**");
      if (said.includes("and a test")) return plan("# A better plan\n\n1. Write it\n2. Test it");
      return "Now I would begin.";
    },
    async run({ visit }) {
      const visitor = await visit();
      const { page } = visitor;
      await page.getByLabel("Permission mode").selectOption("plan");
      await visitor.say("write a.txt");
      const card = visitor.card("Approve this plan?");
      await card.getByRole("heading", { name: "The plan", exact: true }).waitFor();
      assert.equal(await card.getByRole("button", allow(/Always/)).count(), 0, "a plan is approved once");
      await card.getByRole("button", { name: /Keep planning/ }).click();
      await card.getByLabel(/What should be different/).fill("and a test");
      await page.keyboard.press("Enter");
      await card.getByRole("heading", { name: "A better plan" }).waitFor();
      await card.getByRole("button", { name: /Approve plan/ }).click();
      await page.getByRole("article", { name: "Agent" }).filter({ hasText: "Now I would begin." }).waitFor();
      await visitor.rest();
      const tool = page.locator('.tool[data-tool="ExitPlanMode"]').last();
      await tool.locator("summary").click();
      await tool.getByRole("heading", { name: "A better plan" }).waitFor();
    },
  },

  async "a hidden page sends a browser notification that opens the inbox"({ server, visit }) {
    const visitor = await visit({ permissions: ["notifications"], stays_out: true });
    // Tests cannot change whether a page is visible; the notification itself is not visible to them either.
    await visitor.page.addInitScript(() => {
      window.shown = [];
      window.isAway = false;
      Object.defineProperty(document, "hidden", { get: () => window.isAway });
      window.Notification = class {
        static permission = "granted";
        constructor(title, options) {
          window.shown.push({ title, ...options });
          window.last = this;
        }
      };
    });
    await visitor.enter();
    const { page } = visitor;
    const ask = async (name) => {
      const session = await server.call("POST", "/api/sessions", { title: name });
      await server.call("POST", `/api/sessions/${session.id}/runs`, { prompt: `write "x" to ${name}.txt` });
    };
    await ask("one");
    await page.waitForFunction(() => document.title === "(1) Ostler");
    assert.deepEqual(await page.evaluate(() => window.shown), [], "a visible page sends no notification");
    await page.evaluate(() => (window.isAway = true));
    await ask("two");
    await page.waitForFunction(() => window.shown.length > 0);
    const [{ title, body }] = await page.evaluate(() => window.shown);
    assert.equal(title, "An agent needs your answer");
    assert.match(body, /two\.txt/);
    await page.evaluate(() => window.last.onclick());
    await visitor.card(/two\.txt/).waitFor();
  },

  async "the reason for a question is shown step by step"({ visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt');
    await visitor.card().getByText("Why it asks:").click();
    const steps = visitor.card().getByRole("list", { name: "How this was decided" }).getByRole("listitem");
    await steps.first().waitFor();
    assert.ok((await steps.count()) > 1, "the checked steps, and the one that decided");
    assert.equal(await steps.last().getAttribute("class"), "decided");
  },

  async "a question is answered with an option or with free text"({ visit }) {
    const visitor = await visit();
    await visitor.say("ask me which colour I like: red, green or blue");
    const card = visitor.page.getByRole("group", { name: "The agent has a question" });
    await card.getByLabel(/green/).check();
    await card.getByRole("button", { name: "Send" }).click();
    await visitor.rest();
    await visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: "green" }).waitFor();
    await visitor.say("ask me which colour I like: red, green or blue");
    await card.getByLabel("Other answer").fill("ochre");
    await card.getByRole("button", { name: "Send" }).click();
    await visitor.rest();
    await visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: "ochre" }).waitFor();
  },

  async "several questions are tabs and are sent together when all are answered"({ visit }) {
    const visitor = await visit();
    const option = (label, preview) => ({ label, description: `About ${label}`, ...(preview ? { preview } : {}) });
    const questions = [
      { question: "Which base?", header: "Base", multiSelect: false, options: [option("Rust", "fn main() {}"), option("Go")] },
      { question: "Which parts?", header: "Parts", multiSelect: true, options: [option("Server"), option("Page")] },
    ];
    await visitor.say(`use the tool AskUserQuestion with ${JSON.stringify({ questions })}`);
    const card = visitor.page.getByRole("group", { name: "The agent has a question" });
    await card.getByLabel(/Rust/).check();
    await card.getByText("fn main() {}").waitFor();
    await card.getByRole("button", { name: "Next question" }).click();
    await card.getByLabel(/Server/).check();
    await card.getByLabel("Other answer").fill("Docs");
    await visitor.page.reload();
    await card.getByRole("tab", { name: "Base" }).waitFor();
    await card.getByLabel(/Go/).check();
    await card.getByRole("tab", { name: "Parts" }).click();
    await card.getByLabel(/Server/).check();
    await card.getByLabel(/Page/).check();
    await card.getByLabel("Other answer").fill("Docs");
    await card.getByRole("button", { name: "Send" }).click();
    await visitor.rest();
    const tool = visitor.page.locator('.tool[data-tool="AskUserQuestion"]');
    await tool.locator("summary").click();
    const output = await tool.locator(".output pre").textContent();
    for (const word of ["Go", "Server", "Page", "Docs"]) assert.match(output, new RegExp(word));
  },

  async "a card is shown again after reloading and in the inbox"({ server, visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt');
    await visitor.card().waitFor();
    await visitor.page.reload();
    await visitor.card().getByText("+x").waitFor();
    await visitor.go("#/inbox");
    await visitor.card().getByRole("link", { name: /write/ }).waitFor();
    await visitor.card().getByRole("button", allow(/Allow once/)).click();
    await visitor.page.getByRole("heading", { name: "No pending approvals" }).waitFor();
    await visitor.page.goBack();
    await visitor.rest();
    assert.ok(has(server, "a.txt"));
  },

  async "the second browser answers first and the card goes away in the other"({ server, visit }) {
    const [one, two] = [await visit(), await visit()];
    await one.say('write "x" to a.txt');
    await one.card().waitFor();
    await two.go("#/inbox");
    await two.card().getByRole("button", allow(/Allow once/)).click();
    await one.card().waitFor({ state: "detached" });
    await one.rest();
    assert.ok(has(server, "a.txt"));
    await one.page.locator(".tool.done").waitFor();
  },

  async "every step works with the keyboard alone"({ server, visit }) {
    const visitor = await visit();
    const { keyboard } = visitor.page;
    const focused = () => visitor.page.evaluate(() => document.activeElement?.textContent ?? "");
    await visitor.page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
    await keyboard.press("/");
    await keyboard.type('write "x" to a.txt');
    await keyboard.press("Enter");
    await visitor.card().waitFor();
    // From the prompt to the card.
    await keyboard.press("Tab");
    await keyboard.press("k");
    assert.match(await focused(), /May the agent use Write/);
    await keyboard.press("n");
    await keyboard.type("use another name");
    await keyboard.press("Enter");
    await visitor.rest();
    assert.equal(has(server, "a.txt"), false);
    await keyboard.press("/");
    await keyboard.type('write "y" to b.txt');
    await keyboard.press("Enter");
    await visitor.card().waitFor();
    await keyboard.press("Tab");
    await keyboard.press("j");
    await keyboard.press("y");
    await visitor.rest();
    assert.ok(has(server, "b.txt"));
    // From one card to the next with the key alone.
    await askInTwoSessions(server);
    await keyboard.press("i");
    await visitor.card().nth(1).waitFor();
    await keyboard.press("j");
    await keyboard.press("y");
    await visitor.card().nth(1).waitFor({ state: "detached" });
    await keyboard.press("y");
    await visitor.page.getByRole("heading", { name: "No pending approvals" }).waitFor();
    await visitor.page.locator("body").press("?");
    await visitor.page.getByRole("dialog", { name: "Keys" }).waitFor();
    await keyboard.press("Escape");
    await visitor.page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
  },

  async "the next card has the focus as soon as an answered one is gone, even before the reply"({ server, visit }) {
    const visitor = await visit();
    const { page } = visitor;
    await askInTwoSessions(server);
    let reply;
    const held = new Promise((send) => (reply = send));
    await page.route("**/api/approvals/*/decision", async (route) => {
      const response = await route.fetch();
      await held;
      await route.fulfill({ response });
    });
    await visitor.go("#/inbox");
    await visitor.card().nth(1).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("y");
    await visitor.card().nth(1).waitFor({ state: "detached" });
    await page.keyboard.press("y");
    await page.getByRole("heading", { name: "No pending approvals" }).waitFor();
    reply();
  },

  async "a key that is held down answers one card only"({ server, visit }) {
    const visitor = await visit();
    const { keyboard } = visitor.page;
    await askInTwoSessions(server);
    await visitor.go("#/inbox");
    await visitor.card().nth(1).waitFor();
    await keyboard.press("j");
    await keyboard.down("y");
    await visitor.card().nth(1).waitFor({ state: "detached" });
    // The browser repeats the key; nothing else is on its way to the server afterwards.
    await keyboard.down("y");
    await keyboard.up("y");
    assert.equal(await visitor.card().getAttribute("aria-busy"), "false");
    await visitor.card().waitFor();
  },
};

/** Two sessions that wait for an approval each. */
async function askInTwoSessions(server) {
  for (const name of ["c", "d"]) {
    const session = await server.call("POST", "/api/sessions", { title: name });
    await server.call("POST", `/api/sessions/${session.id}/runs`, { prompt: `write "z" to ${name}.txt` });
  }
}
