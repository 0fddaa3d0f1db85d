import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const notes = (server) => join(server.workspace, "notes.txt");

export default {
  async "a first visit leads to a finished edit approved by card"({ server, visit }) {
    const { page, ...visitor } = await visit({ stays_out: true });
    await page.goto(server.url);
    await page.getByLabel("Code or token").fill(server.code);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: 'write "hello world" to notes.txt' }).click();
    const card = page.getByRole("group", { name: /May the agent/ });
    await card.getByText("+hello world").waitFor();
    assert.equal(existsSync(notes(server)), false, "nothing happens before the approval");
    await page.waitForFunction(() => document.title === "(1) Ostler");
    await card.getByRole("button", { name: /Allow once/ }).click();
    await page.locator('.status[data-phase="idle"]').waitFor();
    await page.getByRole("article", { name: "Agent" }).last().waitFor();
    assert.match(readFileSync(notes(server), "utf8"), /hello world/);
    assert.equal(await page.title(), "Ostler");
    assert.ok(visitor.problems.length === 0, visitor.problems.join("\n"));
  },

  async "an unknown code is refused and the token signs in"({ server, visit }) {
    const visitor = await visit({ stays_out: true });
    // The browser itself logs every response with an error status.
    visitor.excused = /401/;
    const { page } = visitor;
    await page.goto(server.url);
    await page.getByLabel("Code or token").fill("wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").filter({ hasText: "Unknown code or token" }).waitFor();
    await page.getByLabel("Code or token").fill(server.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
  },
};
