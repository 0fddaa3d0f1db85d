// MCP servers of a session: the list, and signing in with a browser.

import assert from "node:assert/strict";
import { createServer } from "node:http";

/** An MCP server that requires OAuth, and its authorization server, whose user always agrees. */
async function remote() {
  const issued = new Set();
  const server = createServer(async (request, response) => {
    const base = `http://${request.headers.host}`;
    const url = new URL(request.url, base);
    const json = (value, status = 200) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    let text = "";
    for await (const piece of request) text += piece;
    if (url.pathname === "/.well-known/oauth-protected-resource/mcp") return json({ resource: `${base}/mcp`, authorization_servers: [base] });
    if (url.pathname === "/.well-known/oauth-authorization-server") {
      return json({
        issuer: base, authorization_endpoint: `${base}/authorize`, token_endpoint: `${base}/token`, registration_endpoint: `${base}/register`,
        response_types_supported: ["code"], code_challenge_methods_supported: ["S256"],
      });
    }
    if (url.pathname === "/register") return json({ client_id: "c", redirect_uris: JSON.parse(text).redirect_uris }, 201);
    if (url.pathname === "/authorize") {
      const back = new URL(url.searchParams.get("redirect_uri"));
      for (const [name, value] of [["code", "the-code"], ["state", url.searchParams.get("state")], ["iss", base]]) back.searchParams.set(name, value);
      return response.writeHead(302, { location: back.href }).end();
    }
    if (url.pathname === "/token") {
      issued.add(`access-${issued.size + 1}`);
      return json({ access_token: [...issued].at(-1), token_type: "Bearer", expires_in: 3600 });
    }
    if (url.pathname !== "/mcp") return json({}, 404);
    if (!issued.has(request.headers.authorization?.slice("Bearer ".length))) {
      const challenge = `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`;
      return response.writeHead(401, { "www-authenticate": challenge }).end();
    }
    if (!text) return response.writeHead(405).end();
    const message = JSON.parse(text);
    if (message.id === undefined) return response.writeHead(202).end();
    const results = {
      initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "far", version: "1" } },
      "tools/list": { tools: [{ name: "whoami", inputSchema: { type: "object" } }] },
    };
    const result = results[message.method];
    return json(result ? { jsonrpc: "2.0", id: message.id, result } : { jsonrpc: "2.0", id: message.id, error: { code: -32601, message: "no" } });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { server, url: `http://127.0.0.1:${server.address().port}/mcp` };
}

async function prepared({ server, visit }, url) {
  const visitor = await visit();
  const session = await server.call("POST", "/api/sessions", { title: "Far" });
  await server.call("PUT", `/api/sessions/${session.id}/mcp-servers/far`, { type: "http", url });
  const run = await server.call("POST", `/api/sessions/${session.id}/runs`, { prompt: "hello" });
  for (;;) {
    const { state } = await server.call("GET", `/api/runs/${run.id}`);
    if (state === "completed") break;
    assert.ok(["queued", "running"].includes(state), state);
    await new Promise((done) => setTimeout(done, 20));
  }
  return { visitor, session };
}

export default {
  async "a user signs in to an MCP server in another tab and comes back to the page"(given) {
    const far = await remote();
    try {
      const { visitor, session } = await prepared(given, far.url);
      const { page, context } = visitor;
      await visitor.go(`#/chat/${session.id}`);
      const card = page.getByRole("group", { name: "Sign in to far" });
      await card.waitFor();
      const [tab] = await Promise.all([context.waitForEvent("page"), card.getByRole("button", { name: "Sign in to far" }).click()]);
      await tab.getByRole("heading", { name: "Signed in to far" }).waitFor();
      assert.equal(new URL(tab.url()).search, "", "the code is not in the address any more");
      assert.equal(await tab.evaluate(() => window.opener), null);
      await tab.close();
      await page.evaluate(() => dispatchEvent(new Event("focus")));
      await card.waitFor({ state: "detached" });
      await visitor.go(`#/about/${session.id}`);
      await page.getByRole("region", { name: "MCP servers" }).getByText("connected, 1 tool").waitFor();
    } finally {
      far.server.close();
    }
  },

  async "an address of a sign-in that this user did not begin is refused by the page"({ visit }) {
    const visitor = await visit();
    visitor.excused = /404/;
    const { page } = visitor;
    const base = new URL(page.url()).origin;
    await page.goto(`${base}/mcp-callback?code=stolen&state=forged`);
    await page.getByRole("heading", { name: "Signing in did not work" }).waitFor();
    assert.equal(new URL(page.url()).search, "");
  },

  async "the servers of a session are listed, added, switched off and removed"({ server, visit }) {
    const visitor = await visit();
    const { page } = visitor;
    const session = await server.call("POST", "/api/sessions", { title: "Near" });
    await visitor.go(`#/about/${session.id}`);
    const list = page.getByRole("region", { name: "MCP servers" });
    await list.getByText("This session has no MCP servers.").waitFor();
    await list.getByText("Add an MCP server to this session").click();
    await list.getByLabel("Name", { exact: true }).fill("near");
    await list.getByLabel("Program", { exact: true }).fill("/bin/false");
    await list.getByLabel("Arguments, one per line").fill("one\ntwo words");
    await list.getByLabel(/^Variables/).fill("TOKEN=a=b");
    await list.getByRole("button", { name: "Add server" }).click();
    await list.getByText("/bin/false one two words").waitFor();
    const path = `/api/sessions/${session.id}/mcp-servers`;
    const [near] = (await server.call("GET", path)).items;
    assert.deepEqual([near.name, near.variables, near.shared, near.on], ["near", ["TOKEN"], false, true]);
    await list.getByRole("checkbox").first().uncheck();
    await list.getByText("off", { exact: true }).waitFor();
    assert.equal((await server.call("GET", path)).items[0].on, false);
    await list.getByRole("button", { name: "Remove near" }).click();
    await list.getByText("This session has no MCP servers.").waitFor();
  },
};
