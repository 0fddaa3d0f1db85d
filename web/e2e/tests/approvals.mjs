import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";

const has = (server, name) => existsSync(join(server.workspace, name));
const allow = (scope) => ({ name: scope });

export default {
  async "a no with a note reaches the agent and nothing is written"({ server, visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt');
    await visitor.card().getByRole("button", allow(/Deny/)).click();
    await visitor.page.getByLabel(/Why not/).fill("not this file");
    await visitor.page.getByRole("button", { name: "Deny", exact: true }).click();
    await visitor.rest();
    const tool = visitor.page.locator('.tool[data-tool="Write"]');
    await tool.locator("summary").click();
    await tool.getByText(/not this file/).waitFor();
    assert.equal(has(server, "a.txt"), false);
  },

  async "a no that stops ends the run"({ server, visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt, then write "y" to b.txt');
    await visitor.card().getByRole("button", allow(/Deny/)).click();
    await visitor.page.getByRole("button", { name: "Deny and stop" }).click();
    await visitor.rest();
    assert.equal(await visitor.card().count(), 0);
    assert.equal(has(server, "a.txt") || has(server, "b.txt"), false);
  },

  async "always means no card the next time until the rule is taken back"({ server, visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt');
    await visitor.card().getByText("grant the rule").waitFor();
    await visitor.card().getByRole("button", allow(/Always/)).click();
    await visitor.rest();
    await visitor.go("#/chat");
    await visitor.page.getByRole("heading", { name: "What is to be done?" }).waitFor();
    await visitor.say('write "y" to b.txt');
    await visitor.rest();
    assert.ok(has(server, "b.txt"), "written without a question");
    await visitor.go("#/settings");
    const rule = visitor.page.getByRole("row", { name: /Write/ });
    await rule.getByText("all sessions").waitFor();
    await rule.getByText("just now", { exact: true }).waitFor();
    await rule.getByRole("button", { name: "Take back" }).click();
    await visitor.page.getByText(/everything that needs a yes is asked/).waitFor();
    await visitor.go("#/chat");
    await visitor.page.getByRole("heading", { name: "What is to be done?" }).waitFor();
    await visitor.say('write "z" to c.txt');
    await visitor.card().waitFor();
  },

  async "a question is answered with an option or with words of one's own"({ visit }) {
    const visitor = await visit();
    await visitor.say("ask me which colour I like: red, green or blue");
    const card = visitor.page.getByRole("group", { name: "The agent has a question" });
    await card.getByLabel(/green/).check();
    await card.getByRole("button", { name: "Send" }).click();
    await visitor.rest();
    await visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: "green" }).waitFor();
    await visitor.say("ask me which colour I like: red, green or blue");
    await card.getByLabel("Something else").fill("ochre");
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
    await card.getByLabel("Something else").fill("Docs");
    await visitor.page.reload();
    await card.getByRole("tab", { name: "Base" }).waitFor();
    await card.getByLabel(/Go/).check();
    await card.getByRole("tab", { name: "Parts" }).click();
    await card.getByLabel(/Server/).check();
    await card.getByLabel(/Page/).check();
    await card.getByLabel("Something else").fill("Docs");
    await card.getByRole("button", { name: "Send" }).click();
    await visitor.rest();
    const tool = visitor.page.locator('.tool[data-tool="AskUserQuestion"]');
    await tool.locator("summary").click();
    const told = await tool.locator(".output pre").textContent();
    for (const word of ["Go", "Server", "Page", "Docs"]) assert.match(told, new RegExp(word));
  },

  async "a card is there again after reloading and in the inbox"({ server, visit }) {
    const visitor = await visit();
    await visitor.say('write "x" to a.txt');
    await visitor.card().waitFor();
    await visitor.page.reload();
    await visitor.card().getByText("+x").waitFor();
    await visitor.go("#/inbox");
    await visitor.card().getByRole("link", { name: /write/ }).waitFor();
    await visitor.card().getByRole("button", allow(/Allow once/)).click();
    await visitor.page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
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

  async "everything is done with keys alone"({ server, visit }) {
    const visitor = await visit();
    const { keyboard } = visitor.page;
    const focused = () => visitor.page.evaluate(() => document.activeElement?.textContent ?? "");
    await visitor.page.getByRole("heading", { name: "What is to be done?" }).waitFor();
    await keyboard.press("/");
    await keyboard.type('write "x" to a.txt');
    await keyboard.press("Enter");
    await visitor.card().waitFor();
    // Out of the prompt, and on to the card.
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
    await visitor.page.locator("body").press("?");
    await visitor.page.getByRole("dialog", { name: "Keys" }).waitFor();
    await keyboard.press("Escape");
    await visitor.page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
  },
};
