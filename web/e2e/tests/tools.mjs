import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A red dot. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg==";

async function opened(visitor, name) {
  const tool = visitor.page.locator(`.tool[data-tool="${name}"]`).last();
  await tool.locator("> summary").click();
  return tool;
}

export default {
  async "an edit is shown as a diff"({ visit }) {
    const visitor = await visit();
    await visitor.say("replace Nothing with Something in README.md");
    const card = visitor.card();
    assert.match(await card.locator(".minus").textContent(), /^-.*Nothing/);
    assert.match(await card.locator(".plus").textContent(), /^\+.*Something/);
    await card.getByRole("button", { name: /Allow for this session/ }).click();
    await visitor.rest();
    assert.match(await (await opened(visitor, "Edit")).locator(".plus").textContent(), /Something/);
    await visitor.say("replace Something with Everything in README.md");
    await visitor.page.locator(".tool.done").nth(1).waitFor();
    await visitor.rest();
    assert.equal(await visitor.card().count(), 0, "allowed for the session");
  },

  async "a long output is cut and can be expanded"({ visit }) {
    const visitor = await visit();
    await visitor.say("run `seq 1 100`");
    await visitor.page.locator(".tool.done").waitFor();
    const tool = await opened(visitor, "Bash");
    assert.match(await tool.locator(".command").textContent(), /seq 1 100/);
    const output = tool.locator(".terminal pre");
    assert.ok(!(await output.textContent()).includes("\n99\n"));
    await tool.getByRole("button", { name: /Show all 100 lines/ }).click();
    assert.ok((await output.textContent()).includes("\n99\n"));
  },

  async "a picture that the agent reads is shown"({ server, visit }) {
    writeFileSync(join(server.workspace, "dot.png"), Buffer.from(PICTURE, "base64"));
    const visitor = await visit();
    await visitor.say("read dot.png");
    await visitor.page.locator(".tool.done").waitFor();
    const picture = (await opened(visitor, "Read")).getByRole("img", { name: /Picture 1/ });
    await picture.waitFor();
    assert.ok(await picture.evaluate((it) => it.naturalWidth > 0), "it is a picture that can be drawn");
    await visitor.page.reload();
    await visitor.page.locator(".tool.done").waitFor();
    await (await opened(visitor, "Read")).getByRole("img").waitFor();
  },

  async "a to-do list is shown as a checklist"({ visit }) {
    const visitor = await visit();
    const todos = [
      { content: "Look", status: "completed", activeForm: "Looking" },
      { content: "Leap", status: "in_progress", activeForm: "Leaping" },
    ];
    await visitor.say(`use the tool TodoWrite with ${JSON.stringify({ todos })}`);
    await visitor.page.getByRole("region", { name: "To do: 1 of 2 done" }).getByText("Leaping").waitFor();
  },

  async "a picture is attached and reaches the agent"({ server, visit }) {
    const visitor = await visit();
    await visitor.page.getByLabel("Attach", { exact: true }).setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: Buffer.from(PICTURE, "base64") });
    await visitor.page.getByRole("img", { name: "dot.png" }).waitFor();
    await visitor.say("list the files");
    await visitor.page.getByRole("article", { name: "You" }).getByRole("img").waitFor();
    await visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: "README.md" }).waitFor();
    await visitor.rest();
    const [session] = (await server.call("GET", "/api/sessions")).items;
    const { items } = await server.call("GET", `/api/sessions/${session.id}/log?limit=500`);
    assert.ok(JSON.stringify(items.find((it) => it.kind === "prompt")).includes(PICTURE.slice(0, 40)));
    await visitor.page.reload();
    await visitor.page.getByRole("article", { name: "You" }).getByRole("img").waitFor();
  },

  "a PDF and a text are attached and reach the model; other files are refused": {
    script: ({ messages }) => {
      const documents = messages.at(-1).content.filter((it) => it.type === "document");
      return `Seen: ${documents.map((it) => `${it.title} as ${it.source.media_type}: ${it.source.data}`).join("; ")}`;
    },
    async run({ visit }) {
      const visitor = await visit();
      const { page } = visitor;
      const field = page.getByLabel("Attach", { exact: true });
      const pdf = Buffer.from("%PDF-1.4 nothing");
      await field.setInputFiles([
        { name: "paper.pdf", mimeType: "application/pdf", buffer: pdf },
        { name: "main.rs", mimeType: "", buffer: Buffer.from("fn main() {}") },
      ]);
      await page.getByRole("list", { name: "Attached" }).getByText("main.rs").waitFor();
      await field.setInputFiles({ name: "x.zip", mimeType: "application/zip", buffer: Buffer.from([80, 75, 0, 1]) });
      await page.getByText("x.zip is neither a picture, a PDF nor a text").waitFor();
      await visitor.say("look at these");
      const answer = page.getByRole("article", { name: "Agent" });
      await answer.filter({ hasText: `paper.pdf as application/pdf: ${pdf.toString("base64")}` }).filter({ hasText: "main.rs as text/plain: fn main() {}" }).waitFor();
      await visitor.rest();
      await page.reload();
      await page.getByRole("article", { name: "You" }).getByText("paper.pdf").waitFor();
    },
  },

  async "commands are offered when a slash is typed"({ visit }) {
    const visitor = await visit();
    await visitor.say("list the files");
    await visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: "README.md" }).waitFor();
    await visitor.rest();
    const prompt = visitor.page.getByLabel("Prompt for the agent");
    await prompt.fill("/co");
    const offered = visitor.page.getByRole("listbox", { name: "Suggestions" });
    await offered.getByRole("option", { name: "/compact" }).waitFor();
    assert.equal(await offered.getByRole("option", { name: "/help" }).count(), 0);
    await offered.getByRole("option", { name: "/cost" }).click();
    assert.equal(await prompt.inputValue(), "/cost ");
    await prompt.fill("/comp");
    await offered.getByRole("option", { name: "/compact", selected: true }).waitFor();
    await visitor.page.keyboard.press("Tab");
    assert.equal(await prompt.inputValue(), "/compact ");
    await offered.waitFor({ state: "detached" });
  },

  async "files are offered when an @ is typed"({ server, visit }) {
    mkdirSync(join(server.workspace, "src"));
    writeFileSync(join(server.workspace, "src", "main.rs"), "fn main() {}\n");
    const visitor = await visit();
    await visitor.ask("list the files");
    const prompt = visitor.page.getByLabel("Prompt for the agent");
    await prompt.fill("");
    await prompt.pressSequentially("read @main");
    const offered = visitor.page.getByRole("listbox", { name: "Suggestions" });
    await offered.getByRole("option", { name: "@src/main.rs", selected: true }).waitFor();
    await visitor.page.keyboard.press("Enter");
    assert.equal(await prompt.inputValue(), "read @src/main.rs ");
    await offered.waitFor({ state: "detached" });
    await prompt.pressSequentially("and @READ");
    await offered.getByRole("option", { name: "@README.md" }).waitFor();
    await visitor.page.keyboard.press("Escape");
    await offered.waitFor({ state: "detached" });
    assert.equal(await prompt.inputValue(), "read @src/main.rs and @READ");
  },

  async "an answer is copied as Markdown"({ visit }) {
    const visitor = await visit({ permissions: ["clipboard-read", "clipboard-write"] });
    await visitor.say("list the files");
    const answer = visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: "README.md" });
    await answer.hover();
    await answer.getByRole("button", { name: "Copy this answer" }).click();
    await visitor.page.getByText("Copied.").waitFor();
    assert.match(await visitor.page.evaluate(() => navigator.clipboard.readText()), /README\.md/);
  },

  async "a prompt is sent into the running turn"({ server, visit }) {
    const visitor = await visit();
    await visitor.say("run `until [ -e go ]; do sleep 0.05; done; echo passed`");
    await visitor.page.locator(".tool.runs").waitFor();
    const other = await visit();
    await other.go(await visitor.page.evaluate(() => location.hash));
    await other.page.locator(".tool.runs").waitFor();
    await visitor.page.getByLabel("Prompt for the agent").fill("list the files");
    await visitor.page.getByRole("button", { name: "Send now" }).click();
    const said = (who) => who.page.getByRole("article", { name: "You" }).filter({ hasText: "list the files" });
    await said(visitor).waitFor();
    await said(other).waitFor();
    writeFileSync(join(server.workspace, "go"), "");
    await visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: "README.md" }).waitFor();
    await visitor.rest();
    const [session] = (await server.call("GET", "/api/sessions")).items;
    const { items } = await server.call("GET", `/api/sessions/${session.id}/runs`);
    assert.equal(items.length, 1, "no separate run");
    await visitor.page.reload();
    await said(visitor).waitFor();
    for (const who of [visitor, other]) assert.equal(await said(who).count(), 1, "shown once");
    // The conversation cannot be forked here, and the page says so.
    await said(visitor).hover();
    await said(visitor).getByRole("button", { name: "Edit" }).click();
    await visitor.page.getByRole("textbox", { name: "Send edited prompt" }).fill("something else");
    await visitor.page.getByRole("button", { name: "Send edited prompt" }).click();
    await visitor.page.getByText(/sent into a running turn/).waitFor();
  },
};
