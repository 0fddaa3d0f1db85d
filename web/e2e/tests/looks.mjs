import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function check(visitor, what) {
  // Inserted by the debugger, which the page's policy does not forbid.
  await visitor.page.evaluate(AXE);
  const { violations } = await visitor.page.evaluate(() => window.axe.run());
  const found = violations.map((it) => `${it.id}: ${it.help}\n  ${it.nodes.map((node) => `${node.html}\n  ${node.failureSummary}`).join("\n  ")}`);
  assert.deepEqual(found, [], `${what}\n${found.join("\n")}`);
}

/** All main views, with something in each. */
async function tour(visitor, each) {
  await each("welcome");
  await visitor.ask("list the files");
  const about = (await visitor.page.evaluate(() => location.hash)).replace("#/chat", "about");
  await visitor.go("#/chat");
  await visitor.page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
  await visitor.say("list the files, then ask me which colour I like: red, green or blue");
  await visitor.page.getByRole("group", { name: "The agent has a question" }).waitFor();
  await visitor.page.locator(".tool summary").first().click();
  await each("question");
  await visitor.go("#/chat");
  await visitor.page.getByRole("heading", { name: "What should the agent do?" }).waitFor();
  await visitor.say('write "hello" to notes.txt');
  await visitor.card().waitFor();
  await each("approval");
  for (const place of [about, "inbox", "tasks", "tasks/greet", "schedules", "sessions", "usage", "settings", "doctor"]) {
    await visitor.go(`#/${place}`);
    await visitor.page.locator("main h1").waitFor();
    await visitor.page.waitForLoadState("networkidle");
    // Collapsed parts are checked too.
    for (const folded of await visitor.page.locator("main details:not(.menu) > summary").all()) await folded.click();
    await visitor.page.waitForLoadState("networkidle");
    await each(place);
  }
}

const wide = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

export default {
  async "all views are accessible in light and in dark"({ visit }) {
    for (const colorScheme of ["light", "dark"]) {
      const visitor = await visit({ colorScheme, reducedMotion: "reduce" });
      await tour(visitor, (what) => check(visitor, `${what}, ${colorScheme}`));
    }
  },

  async "the sign-in page is accessible"({ server, visit }) {
    const visitor = await visit({ stays_out: true });
    await visitor.page.goto(server.url);
    await visitor.page.getByLabel("Code or token").waitFor();
    await check(visitor, "door");
  },

  async "the page fits on a phone and every view is reachable there"({ visit }) {
    const visitor = await visit({ viewport: { width: 375, height: 667 }, hasTouch: true, isMobile: true });
    await tour(visitor, async (what) => {
      assert.equal(await wide(visitor.page), false, `${what} is wider than the screen`);
      await check(visitor, `${what}, phone`);
    });
    await visitor.page.getByRole("button", { name: "Menu" }).click();
    await visitor.page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: /Inbox/ }).click();
    await visitor.card().getByRole("button", { name: /Allow once/ }).click();
    await visitor.card().waitFor({ state: "detached" });
  },

  async "there is no motion if the system asks for none"({ server, visit }) {
    for (const reducedMotion of ["no-preference", "reduce"]) {
      const visitor = await visit({ reducedMotion });
      await visitor.say("run `until [ -e go ]; do sleep 0.05; done`");
      await visitor.page.locator(".tool.runs").waitFor();
      const moving = await visitor.page.evaluate(() => document.getAnimations().length);
      assert.equal(moving > 0, reducedMotion === "no-preference", `${moving} animations with ${reducedMotion}`);
      writeFileSync(join(server.workspace, "go"), "");
      await visitor.rest();
      rmSync(join(server.workspace, "go"));
    }
  },

  async "the dark theme follows the system and can be chosen permanently"({ visit }) {
    const visitor = await visit({ colorScheme: "dark" });
    const back = () => visitor.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await back();
    await visitor.go("#/settings");
    await visitor.page.getByLabel("Light").check();
    const light = await back();
    assert.notEqual(light, dark);
    await visitor.page.reload();
    assert.equal(await back(), light);
  },

  async "the content security policy blocks inline scripts and other hosts"({ server }) {
    const answer = await fetch(server.url);
    const policy = answer.headers.get("content-security-policy");
    assert.ok(policy.startsWith("default-src 'none'"), policy);
    assert.ok(!/unsafe|\*|http/.test(policy), policy);
    assert.equal(answer.headers.get("cache-control"), "no-cache");
    const text = await answer.text();
    assert.ok(!/<script(?![^>]*\bsrc=)|<style|\son\w+=|style=/.test(text), text);
    const [, script] = /src="(\/assets\/[^"]+)"/.exec(text);
    const asset = await fetch(server.url + script);
    assert.match(asset.headers.get("cache-control"), /immutable/);
  },

  async "the first load is under 150 kB"({ server, visit }) {
    const visitor = await visit({ stays_out: true });
    const loaded = [];
    visitor.page.on("response", (response) => loaded.push(response));
    await visitor.page.goto(server.url);
    await visitor.page.getByLabel("Code or token").waitFor();
    await visitor.page.waitForLoadState("networkidle");
    const sizes = await Promise.all(loaded.map(async (it) => gzipSync(await it.body()).length));
    const sum = sizes.reduce((all, size) => all + size, 0);
    console.log(`first load: ${(sum / 1000).toFixed(1)} kB compressed in ${loaded.length} files`);
    assert.ok(loaded.length >= 3 && sum < 150_000, `${sum} bytes`);
  },

  async "text of a model cannot run scripts"({ server, visit }) {
    const session = await server.call("POST", "/api/sessions", { title: "Evil" });
    const content = [
      "<script>window.evil = 1</script>", '<img src="http://elsewhere.test/x.png" onerror="window.evil = 1">',
      "![x](http://elsewhere.test/y.png)", '<p style="position:fixed" onclick="window.evil = 1" class="approval" id="main">p</p>',
      "[x](javascript:window.evil=1)", '<iframe src="/"></iframe>', '<form action="/api/users"><input name="name"></form>',
      '<svg><a xlink:href="javascript:1">s</a></svg>', "**bold** [link](https://example.org)", "```rust\nfn main() {}\n```",
    ].join("\n\n");
    const visitor = await visit({ stays_out: true });
    await showConversation(visitor, [{ id: "u", role: "user", content: "<b>hi</b>" }, { id: "a", role: "assistant", content }]);
    await visitor.enter();
    await visitor.go(`#/chat/${session.id}`);
    const text = visitor.page.locator(".markdown");
    await text.getByText("bold").waitFor();
    await text.locator("code .hljs-keyword").waitFor();
    const found = await text.evaluate((root) => [...root.querySelectorAll("*")].map((it) => [it.tagName, ...it.getAttributeNames()].join(" ")));
    const harmless = /^(P|STRONG|CODE( class( data-coloured)?)?|PRE|SPAN class|A( href)?( target rel)?)$/;
    assert.deepEqual(found.filter((it) => !harmless.test(it)), [], "only elements of Markdown");
    assert.equal(await text.locator('a[href^="javascript"]').count(), 0);
    await text.getByText("<script>window.evil = 1</script>").waitFor();
    assert.equal(await text.getByRole("link", { name: "link" }).getAttribute("rel"), "noopener noreferrer");
    assert.equal(await visitor.page.evaluate(() => window.evil), undefined);
    await visitor.page.getByText("<b>hi</b>").waitFor();
  },
};

/** A server that sends an invented conversation. */
async function showConversation(visitor, messages, more = []) {
  const run = { threadId: "t", runId: "r" };
  const events = [
    { type: "RUN_STARTED", ...run }, { type: "MESSAGES_SNAPSHOT", messages }, ...more,
    { type: "RUN_FINISHED", ...run, outcome: { type: "success" } },
  ];
  const body = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  await visitor.page.route("**/agui/connect", (route) => route.fulfill({ body, headers: { "content-type": "text/event-stream" } }));
}
