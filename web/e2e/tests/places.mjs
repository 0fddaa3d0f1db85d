import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { lastSaid } from "../model.mjs";

export default {
  async "a task is refused with an invalid parameter and runs with a valid one"({ visit }) {
    const visitor = await visit();
    const { page } = visitor;
    await visitor.go("#/tasks");
    await page.getByRole("link", { name: /greet/ }).click();
    await page.getByLabel("times").fill("often");
    await page.getByLabel("Prompt").fill("list the files");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("This is required.").waitFor();
    await page.getByText("Enter a number, such as 3.").waitFor();
    assert.equal(await page.getByLabel("who").getAttribute("aria-invalid"), "true");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "input-who");
    await page.getByLabel("who").fill("Ann");
    await page.getByLabel("times").fill("2");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("article", { name: "Agent" }).filter({ hasText: "README.md" }).waitFor();
    await visitor.rest();
    await visitor.go("#/tasks");
    const row = page.getByRole("listitem").filter({ hasText: "list the files" }).filter({ hasText: "completed" });
    await row.getByRole("button", { name: "Run again" }).waitFor();
  },

  async "a task's log is followed while it runs, and the task is run again"({ server, visit }) {
    const visitor = await visit();
    const { page } = visitor;
    const body = { name: "Wait", agentId: "greet", taskType: "skill", inputValues: { who: "Ann" } };
    const task = await server.call("POST", "/api/tasks", { ...body, userPrompt: "run `until [ -e go ]; do sleep 0.05; done; echo passed`" });
    await server.call("POST", `/api/tasks/${task.id}/execute`);
    await visitor.go("#/tasks");
    const row = page.locator(`[data-task="${task.id}"]`);
    await row.getByText("Log", { exact: true }).click();
    await row.getByRole("log").locator('.tool.runs[data-tool="Bash"]').waitFor();
    writeFileSync(join(server.workspace, "go"), "");
    await row.getByRole("log").locator('.tool.done[data-tool="Bash"]').waitFor();
    await row.getByText("completed").waitFor();
    const first = await row.getByRole("link", { name: "Wait" }).getAttribute("href");
    await row.getByRole("button", { name: "Run again" }).click();
    await page.waitForFunction(([id, before]) => document.querySelector(`[data-task="${id}"] a`).getAttribute("href") !== before, [task.id, first]);
    await row.getByText("completed").waitFor();
    assert.equal((await server.call("GET", "/api/sessions")).items.length, 2, "a session for each time");
  },

  async "the text of a skill can be read before it is run"({ visit }) {
    const visitor = await visit();
    await visitor.go("#/tasks/greet");
    await visitor.page.getByText("Skill text").click();
    await visitor.page.locator(".skill .markdown").getByText("Greet {{ who }}.").waitFor();
    await visitor.page.getByRole("row", { name: "description Greets a person." }).waitFor();
  },

  async "a value that the server refuses is reported at its field"({ server, visit }) {
    const visitor = await visit();
    // The refusal is tested on purpose, and the browser logs it.
    visitor.excused = /400|422/;
    const refused = { error: { code: "invalid", message: "Ann is not at home", field: "inputValues.who" } };
    await visitor.page.route("**/api/tasks", (route) =>
      route.request().method() === "POST" ? route.fulfill({ status: 422, json: refused }) : route.fallback(),
    );
    await visitor.go("#/tasks/greet");
    await visitor.page.getByLabel("who").fill("Ann");
    await visitor.page.getByLabel("Prompt").fill("greet her");
    await visitor.page.getByRole("button", { name: "Run" }).click();
    await visitor.page.locator("#problem-who", { hasText: "Ann is not at home" }).waitFor();
    assert.deepEqual((await server.call("GET", "/api/tasks")).items, []);
  },

  async "a schedule shows its next times and can be paused"({ visit }) {
    const visitor = await visit();
    // An invalid time is refused on purpose.
    visitor.excused = /400|422/;
    const { page } = visitor;
    await visitor.go("#/schedules");
    await page.getByLabel("Name").fill("Morning");
    await page.getByLabel("Prompt").fill("list the files");
    await page.getByRole("textbox", { name: "Time" }).fill("when I feel like it");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.locator("#plan-problem:not(:empty)").waitFor();
    await page.getByRole("textbox", { name: "Time" }).fill("0 9 * * 1-5");
    await page.getByRole("button", { name: "Create schedule" }).click();
    const row = page.getByRole("listitem").filter({ hasText: "Morning" });
    await row.getByText(/next: .*9:00/).waitFor();
    await row.getByRole("button", { name: "Pause" }).click();
    await row.getByText("no next run").waitFor();
  },

  async "sessions are sorted by activity, found by their text, and listed in pages"({ server, visit }) {
    const old = await server.call("POST", "/api/sessions", { title: "An old one" });
    for (let count = 0; count < 55; count += 1) await server.call("POST", "/api/sessions", { title: `Number ${count}` });
    await server.call("POST", `/api/sessions/${old.id}/runs`, { prompt: "list the files" });
    const visitor = await visit();
    const { page } = visitor;
    const rows = page.getByRole("main").locator(".rows > li");
    await visitor.go("#/sessions");
    await rows.first().getByText("An old one").waitFor();
    await rows.first().getByText("1 run", { exact: false }).waitFor();
    assert.equal(await rows.count(), 50);
    await page.getByRole("button", { name: "Show more" }).click();
    await page.getByRole("main").getByRole("link", { name: "Number 0", exact: false }).first().waitFor();
    assert.equal(await rows.count(), 56);
    await page.getByLabel("Search").fill("list the");
    await page.waitForFunction(() => document.querySelectorAll("main .rows > li").length === 1);
    await rows.first().getByText("An old one").waitFor();
  },

  "usage is shown in figures, charts and tables, with how full the context window is": {
    script: (asked) => (lastSaid(asked).startsWith("result:") ? "There it is." : { text: "I look.", calls: [{ name: "Glob", input: { pattern: "*" } }] }),
    async run({ visit }) {
      const visitor = await visit();
      const { page } = visitor;
      for (const prompt of ["look", "look again"]) {
        await visitor.ask(prompt);
      }
      const meter = page.getByRole("link", { name: "Usage of this session" });
      await meter.getByText("2 % full").waitFor();
      await meter.getByText(/^\$0\.0\d$/).waitFor();
      await meter.click();
      await page.getByRole("list", { name: "Time by tool" }).getByText(/in 2 calls, the longest/).waitFor();
      await page.getByRole("img", { name: /^Cost per run: \$0\.0\d in all/ }).waitFor();
      await page.getByText("From the cache").locator("xpath=..").getByText("90 %").waitFor();
      await visitor.go("#/usage");
      await page.getByRole("img", { name: /^Tokens per day: 8\d\.\dk in all/ }).waitFor();
      const chart = page.getByRole("figure").filter({ hasText: "Tokens per day" });
      await chart.getByText("As a table").click();
      assert.deepEqual((await chart.getByRole("row").nth(1).getByRole("cell").allTextContents()), ["72.0k", "3.2k", "4.8k", "1.0k"]);
      await page.getByLabel("Days").selectOption("7");
      await page.getByRole("img", { name: /^Tokens per day/ }).waitFor();
    },
  },

  async "changed files of a session are shown and rewound"({ server, visit }) {
    const visitor = await visit();
    const { page } = visitor;
    const read = (name) => readFileSync(join(server.workspace, name), "utf8");
    for (const prompt of ["replace Nothing with Something in README.md", 'write "new" to notes.txt']) {
      await visitor.say(prompt);
      await visitor.card().getByRole("button", { name: /Allow once/ }).click();
      await visitor.rest();
    }
    assert.match(read("README.md"), /Something/);
    await page.getByRole("main").getByLabel("Session menu").click();
    await page.getByRole("link", { name: "Changes and usage" }).click();
    const edit = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: /replace Nothing/ }) });
    await edit.getByText("README.md", { exact: true }).click();
    assert.match(await edit.locator(".minus").textContent(), /^-Nothing yet/);
    assert.match(await edit.locator(".plus").textContent(), /^\+Something yet/);
    await edit.getByRole("button", { name: /Rewind to before this prompt/ }).click();
    const group = edit.getByRole("group", { name: "Rewind files" });
    await group.getByText(/README\.md/).waitFor();
    await group.getByText(/notes\.txt/).waitFor();
    assert.match(read("README.md"), /Something/, "nothing happens before the confirmation");
    await group.getByRole("button", { name: "Rewind files" }).click();
    await page.getByText("2 files are restored.").waitFor();
    assert.match(read("README.md"), /Nothing yet/);
    assert.equal(existsSync(join(server.workspace, "notes.txt")), false);
  },

  async "model, folder, servers and agents of a session are shown"({ server, visit }) {
    const visitor = await visit();
    const { page } = visitor;
    const { id } = await server.call("POST", "/api/sessions", { title: "Shared" });
    // An application that shares its state has a separate server in the engine.
    const messages = [{ id: "m", role: "user", content: "list the files" }];
    const input = { threadId: id, runId: "r", messages, tools: [], context: [], state: { a: 1 }, forwardedProps: {} };
    const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
    await (await fetch(`${server.url}/agui`, { method: "POST", headers, body: JSON.stringify(input) })).text();
    await visitor.go(`#/about/${id}`);
    const agent = page.getByRole("region", { name: /^Agent/ });
    await agent.getByText("offline-demo").waitFor();
    await agent.getByRole("listitem").filter({ hasText: "shared_state" }).getByText("connected").waitFor();
    await agent.getByRole("listitem").filter({ hasText: "general-purpose" }).waitFor();
    await agent.locator("summary", { hasText: / tools$/ }).click();
    await agent.getByText(/Bash,/).waitFor();
  },

  async "the doctor lists every check with its state"({ visit }) {
    const visitor = await visit();
    await visitor.go("#/settings");
    await visitor.page.getByRole("link", { name: /Check the installation/ }).click();
    const checks = visitor.page.getByRole("list", { name: "Checks" }).getByRole("listitem");
    await checks.filter({ hasText: "Data folder" }).getByText("ok", { exact: true }).waitFor();
    assert.ok((await checks.count()) > 5);
    await visitor.page.getByRole("button", { name: "Check again" }).click();
    await checks.first().waitFor();
  },

  async "a browser can sign out another one"({ visit }) {
    const [one, two] = [await visit(), await visit()];
    two.excused = /401|WebSocket/;
    await one.go("#/settings");
    const rows = one.page.getByRole("region", { name: "Signed-in browsers" }).getByRole("listitem");
    await rows.filter({ hasText: "this one" }).waitFor();
    await rows.filter({ hasNotText: "this one" }).getByRole("button", { name: "Sign out" }).click();
    await one.page.waitForFunction(() => document.querySelectorAll("[aria-labelledby=browsers] li").length === 1);
    // At once, and without being loaded again: its WebSocket is closed.
    await two.page.getByLabel("Code or token").waitFor();
    assert.equal(await two.page.evaluate(() => localStorage.getItem("ostler-page-key")), null);
    let sockets = 0;
    two.page.on("websocket", () => sockets++);
    await two.page.waitForTimeout(2_000);
    assert.equal(sockets, 0, "a signed-out browser does not keep reconnecting");
  },

  async "a page without its key has to sign in again, though the browser still has the cookie"({ visit }) {
    const visitor = await visit();
    const { page } = visitor;
    visitor.excused = /401|WebSocket/;
    await page.evaluate(() => localStorage.setItem("ostler-page-key", "ostler_guess"));
    const statuses = await page.evaluate(async () => {
      const asked = ["/api/auth/me", "/api/sessions", "/openapi.json"].map((path) => fetch(path));
      return (await Promise.all(asked)).map((it) => it.status);
    });
    assert.deepEqual(statuses, [401, 401, 401], "the cookie alone is not enough");
    await page.reload();
    await page.getByLabel("Code or token").waitFor();
  },

  async "sessions are searched, renamed, exported and deleted"({ server, visit }) {
    for (const title of ["Apples", "Pears"]) await server.call("POST", "/api/sessions", { title });
    const visitor = await visit();
    const { page } = visitor;
    const main = page.getByRole("main");
    await visitor.go("#/sessions");
    await main.getByRole("link", { name: /Apples/ }).waitFor();
    await page.getByLabel("Search").fill("pear");
    await main.getByRole("link", { name: /Apples/ }).waitFor({ state: "detached" });
    await main.getByLabel("Session menu").click();
    await main.getByRole("button", { name: "Rename" }).click();
    await main.getByLabel("Title").fill("Ripe pears");
    await main.getByRole("button", { name: "Save title" }).click();
    await main.getByRole("link", { name: /Ripe pears/ }).waitFor();
    assert.ok((await server.call("GET", "/api/sessions")).items.some((it) => it.title === "Ripe pears"));
    await main.getByRole("link", { name: /Ripe pears/ }).click();
    await visitor.say("list the files");
    await visitor.page.getByRole("article", { name: "Agent" }).last().waitFor();
    await visitor.rest();
    await main.getByLabel("Session menu").click();
    const [download] = await Promise.all([page.waitForEvent("download"), main.getByRole("button", { name: "Export" }).click()]);
    const lines = readFileSync(await download.path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
    assert.equal(lines.find((line) => line.kind === "prompt").body.text, "list the files");
    page.once("dialog", (dialog) => dialog.accept());
    await main.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
    assert.ok(!(await server.call("GET", "/api/sessions")).items.some((it) => it.title === "Ripe pears"));
  },

  async "a new user signs in with a token and sees no sessions of others"({ server, visit }) {
    await server.call("POST", "/api/sessions", { title: "The owner's own" });
    const visitor = await visit();
    await visitor.go("#/settings");
    await visitor.page.getByLabel("Name").fill("ann");
    await visitor.page.getByRole("button", { name: "Add user" }).click();
    const row = visitor.page.getByRole("listitem").filter({ hasText: "ann" });
    await row.getByRole("button", { name: "Create token" }).click();
    const token = await visitor.page.getByText("shown this once").locator("xpath=..").locator("code").textContent();
    const ann = await visit({ stays_out: true });
    // A token is first tried as a code, which the server refuses.
    ann.excused = /401/;
    await ann.page.goto(server.url);
    await ann.page.getByLabel("Code or token").fill(token);
    await ann.page.getByRole("button", { name: "Sign in" }).click();
    await ann.page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
    await ann.go("#/sessions");
    await ann.page.getByRole("heading", { name: "No sessions yet" }).waitFor();
    await ann.go("#/settings");
    await ann.page.getByText("ann", { exact: true }).waitFor();
    assert.equal(await ann.page.getByRole("heading", { name: "Users" }).count(), 0);
    await row.getByRole("button", { name: /Revoke/ }).click();
    await ann.page.reload();
    await ann.page.getByLabel("Code or token").waitFor();
  },
};
