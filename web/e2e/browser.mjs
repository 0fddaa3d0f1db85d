// Browsers for the tests. Each records errors that must never happen, and the test checks them at the end.

import { existsSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { chromium } from "playwright-core";

const EXECUTABLE = process.env.OSTLER_CHROMIUM ?? "/usr/bin/chromium";
/** For work on the page: its files come from a folder instead of from the program. */
const FOLDER = process.env.OSTLER_PAGE;
/** Longer than any step takes on a slow machine; reached only when something is wrong. */
export const PATIENCE = 30_000;

// With files that do not come from the server, the browser treats the server as another network.
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...(FOLDER ? ["--disable-features=LocalNetworkAccessChecks"] : [])];
export const launch = () => chromium.launch({ executablePath: EXECUTABLE, args: ARGS });

const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json" };

export class Visitor {
  /** A user with a separate browser; `enter` signs in with a code. */
  static async come(browser, server, options = {}) {
    const visitor = new Visitor();
    visitor.server = server;
    visitor.context = await browser.newContext({ viewport: { width: 1200, height: 800 }, ...options });
    visitor.context.setDefaultTimeout(PATIENCE);
    visitor.page = await visitor.context.newPage();
    visitor.problems = [];
    visitor.watch();
    if (FOLDER) await visitor.serveFrom(FOLDER);
    return visitor;
  }

  watch() {
    this.page.on("console", (message) => {
      if (message.type() !== "error" || this.excused?.test(message.text())) return;
      this.problems.push(`console: ${message.text()} ${message.location().url}`);
    });
    this.page.on("pageerror", (error) => this.problems.push(`error: ${error.stack ?? error}`));
    this.page.on("request", (request) => {
      const url = new URL(request.url());
      const isOwn = url.host === this.server.address || url.protocol === "data:" || url.protocol === "blob:";
      if (!isOwn) this.problems.push(`request to another host: ${request.url()}`);
    });
  }

  async serveFrom(folder) {
    const policy = (await fetch(`${this.server.url}/healthz`)).headers.get("content-security-policy");
    await this.context.route("**/*", (route) => {
      const path = new URL(route.request().url()).pathname;
      const file = join(folder, ["/", "/mcp-callback"].includes(path) ? "index.html" : path);
      if (path.startsWith("/api") || path.startsWith("/agui") || !existsSync(file)) return route.fallback();
      const headers = { "content-type": KINDS[extname(file)] ?? "", "content-security-policy": policy };
      return route.fulfill({ body: readFileSync(file), headers });
    });
  }

  async enter(code) {
    await this.page.goto(`${this.server.url}/#code=${code ?? (await this.server.anotherCode())}`);
    await this.page.getByRole("navigation", { name: "Main" }).or(this.page.getByRole("button", { name: /Menu/ })).first().waitFor();
    return this;
  }

  /** Sends a prompt in the open session. */
  async say(text) {
    await this.page.getByLabel("Prompt for the agent").fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** Sends a prompt and waits for the end of its run. The prompt and the running state are drawn at once. */
  async ask(text) {
    const said = this.page.getByRole("article", { name: "You" });
    const next = await said.count();
    await this.say(text);
    await said.nth(next).waitFor();
    await this.rest();
  }

  card(name = /May the agent/) {
    return this.page.getByRole("group", { name });
  }

  /** Waits until the open session is idle. */
  async rest(phase = "idle") {
    await this.page.locator(`.status[data-phase="${phase}"]`).waitFor();
  }

  async go(hash) {
    await this.page.evaluate((to) => (location.hash = to), hash);
  }

  async leave() {
    await this.context.close();
    if (this.problems.length > 0) throw new Error(this.problems.join("\n"));
  }
}
