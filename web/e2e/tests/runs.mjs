import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastSaid } from "../model.mjs";

/** A command that the server of the tests allows, and that ends when the test releases it. */
const GATE = "run `until [ -e go ]; do sleep 0.05; done; echo passed`";
const pass = (server) => writeFileSync(join(server.workspace, "go"), "");

async function waitAtTheGate(visitor) {
  await visitor.say(GATE);
  await visitor.page.locator('.tool.runs[data-tool="Bash"]').waitFor();
}

const agent = (visitor, text) => visitor.page.getByRole("article", { name: "Agent" }).filter({ hasText: text });

export default {
  async "reloading in the middle of a run loses nothing"({ server, visit }) {
    const visitor = await visit();
    await waitAtTheGate(visitor);
    await visitor.page.reload();
    await visitor.page.locator('.tool.runs[data-tool="Bash"]').waitFor();
    await visitor.page.getByText("Working…").waitFor();
    pass(server);
    await visitor.rest();
    const tool = visitor.page.locator('.tool.done[data-tool="Bash"]');
    await tool.locator("summary").click();
    await tool.getByText("passed", { exact: true }).waitFor();
    assert.equal(await visitor.page.getByRole("article", { name: "You" }).count(), 1, "nothing is shown twice");
  },

  async "a second browser sees which session is running"({ server, visit }) {
    const visitor = await visit();
    await waitAtTheGate(visitor);
    const later = await visit();
    const entry = later.page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: /until/ });
    await entry.getByText("running").waitFor();
    pass(server);
    await entry.getByText("just now").waitFor();
  },

  async "an interrupted run ends and the next one works"({ visit }) {
    const visitor = await visit();
    await waitAtTheGate(visitor);
    await visitor.page.getByRole("button", { name: /Interrupt/ }).click();
    await visitor.rest();
    await visitor.page.getByText("Interrupted.").waitFor();
    await visitor.say("list the files");
    await agent(visitor, "README.md").waitFor();
    await visitor.rest();
  },

  async "prompts sent during a run are queued and can be withdrawn"({ server, visit }) {
    const visitor = await visit();
    await waitAtTheGate(visitor);
    await visitor.say("read README.md");
    await visitor.say("list the files");
    const queue = visitor.page.getByRole("list", { name: "Queued prompts" });
    await queue.getByText("Next: list the files").waitFor();
    await queue.getByRole("listitem").filter({ hasText: "list the files" }).getByRole("button", { name: "Withdraw" }).click();
    await queue.getByText("Next: list the files").waitFor({ state: "detached" });
    pass(server);
    await agent(visitor, "Nothing yet.").waitFor();
    await visitor.rest();
    const [session] = (await server.call("GET", "/api/sessions")).items;
    const { items } = await server.call("GET", `/api/sessions/${session.id}/runs`);
    assert.deepEqual(items.map((run) => run.state), ["completed", "completed", "cancelled"]);
  },

  async "a session is resumed later with its whole conversation"({ visit }) {
    const visitor = await visit();
    await visitor.say("read README.md");
    await agent(visitor, "Nothing yet.").waitFor();
    await visitor.rest();
    const later = await visit();
    await later.go("#/sessions");
    await later.page.getByRole("main").getByRole("link", { name: /read README.md/ }).click();
    await agent(later, "Nothing yet.").waitFor();
    await later.ask("list the files");
    assert.equal(await later.page.getByRole("article", { name: "You" }).count(), 2);
    // The first browser did nothing and still sees it.
    await visitor.page.getByRole("article", { name: "You" }).filter({ hasText: "list the files" }).waitFor();
  },

  async "an edited prompt continues in a copy of the conversation"({ server, visit }) {
    const visitor = await visit();
    const { page } = visitor;
    const said = page.getByRole("article", { name: "You" });
    for (const prompt of ["read README.md", "list the files", "list the files"]) {
      await visitor.ask(prompt);
    }
    const original = page.url();
    const instead = async (which, text) => {
      await said.nth(which).hover();
      await said.nth(which).getByRole("button", { name: "Edit" }).click();
      await page.getByRole("textbox", { name: "Send edited prompt" }).fill(text);
      await page.getByRole("button", { name: "Send edited prompt" }).click();
      await said.filter({ hasText: text }).waitFor();
      await visitor.rest();
    };
    // The same prompt was sent twice; this is the second one.
    await instead(2, "how many files are there");
    const copy = ["read README.md", "list the files", "how many files are there"];
    assert.deepEqual(await said.locator("p").allTextContents(), copy);
    await page.reload();
    await said.nth(2).waitFor();
    assert.deepEqual(await said.locator("p").allTextContents(), copy);
    await page.getByRole("link", { name: "forked" }).click();
    await page.waitForURL(original);
    await said.filter({ hasText: "list the files" }).nth(1).waitFor();
    assert.deepEqual(await said.locator("p").allTextContents(), ["read README.md", "list the files", "list the files"], "the original is unchanged");
    await page.getByRole("main").getByLabel("Session menu").click();
    await page.getByRole("button", { name: "Fork" }).click();
    await page.getByText("This is a copy.").waitFor();
    await said.nth(2).waitFor();
    // A fork can go back to prompts from before it was made.
    await instead(1, "what is in README.md");
    assert.deepEqual(await said.locator("p").allTextContents(), ["read README.md", "what is in README.md"]);
    assert.equal((await server.call("GET", "/api/sessions")).items.length, 4);
  },

  async "a subagent's work is shown below its call"({ visit }) {
    const visitor = await visit();
    await visitor.ask("ask a subagent to list the files");
    const tool = visitor.page.locator('.row > .tool.done').first();
    await tool.locator("> summary").click();
    await tool.locator('.lane .tool[data-tool="Glob"]').waitFor();
  },

  "a run interrupted by a killed server is resumed on request": {
    script: (asked) => {
      const said = lastSaid(asked);
      if (said.includes("You were interrupted")) return "I continue, and all is done.";
      return { text: "I wait.", calls: [{ name: "Bash", input: { command: "until [ -e go ]; do sleep 0.05; done" } }] };
    },
    async run({ server, visit }) {
      const visitor = await visit();
      visitor.excused = /ERR_|WebSocket/;
      await visitor.say("wait");
      await visitor.page.locator('.tool.runs[data-tool="Bash"]').waitFor();
      await server.stop("SIGKILL");
      await visitor.page.getByText("Connection lost.").waitFor();
      await server.start();
      await visitor.page.getByText("The server ended while the agent was at work.").waitFor();
      await visitor.page.getByRole("button", { name: "Resume" }).click();
      await agent(visitor, "I continue, and all is done.").waitFor();
      await visitor.rest();
      assert.equal(await visitor.page.getByRole("button", { name: "Resume" }).count(), 0);
    },
  },

  "an open page continues after a restart of the server": {
    // The next engine repeats the interrupted call.
    script: (asked) => {
      const said = lastSaid(asked);
      if (said.startsWith("result:") && !said.includes("You were interrupted")) return "It is written.";
      return { text: "I write it.", calls: [{ name: "Write", input: { file_path: `${folder(asked)}/a.txt`, content: "kept" } }] };
    },
    async run({ server, visit }) {
      const visitor = await visit();
      // The browser itself logs connections that fail while there is no server.
      visitor.excused = /ERR_|401|WebSocket/;
      await visitor.say(`in ${server.workspace}: write it down`);
      await visitor.card().getByText("+kept").waitFor();
      await visitor.page.getByLabel("Prompt for the agent").fill("a draft that is not sent");
      await server.stop();
      await visitor.page.getByText("Connection lost.").waitFor();
      assert.equal(existsSync(join(server.workspace, "a.txt")), false);
      await server.start();
      await visitor.page.getByText("Connection lost.").waitFor({ state: "detached" });
      assert.equal(await visitor.page.getByLabel("Prompt for the agent").inputValue(), "a draft that is not sent");
      await visitor.card().getByRole("button", { name: /Allow once/ }).click();
      await agent(visitor, "It is written.").waitFor();
      await visitor.rest();
      assert.equal(readFileSync(join(server.workspace, "a.txt"), "utf8"), "kept");
      assert.equal(await visitor.card().count(), 0, "one approval is enough");
    },
  },
};

/** The agent's folder, from the first prompt. */
const folder = ({ messages }) => /in (\S+): write/.exec(JSON.stringify(messages))[1];
