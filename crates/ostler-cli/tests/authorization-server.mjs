// An authorization server (oidc-provider, as it is shipped) and an MCP server that accepts only its tokens. Both are on
// ports of this machine; the first line of output names them. Every user agrees to everything at once.
//
// POST /test on the MCP server changes how both behave, and answers with what has happened so far.

import http from 'node:http';
import { pathToFileURL } from 'node:url';

const installed = `${process.env.OSTLER_MCP_PEERS}/node_modules/oidc-provider/lib/index.js`;
// The library warns about everything that is for tests only.
console.warn = console.info = () => {};
const { default: Provider, errors } = await import(pathToFileURL(installed).href);

const settings = {
  // Who is signed in to the authorization server in every browser.
  user: 'ada',
  // How many seconds an access token lasts.
  lifetime: 3600,
  // How many milliseconds the authorization server takes to renew a token.
  delay: 0,
  // Access tokens that were issued before are no longer accepted.
  expired: [],
};
const seen = { grants: [], refusals: [] };

const listen = async (server) => {
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${server.address().port}`;
};
const [authorization, protectedServer] = [http.createServer(), http.createServer()];
const [issuer, base] = [await listen(authorization), await listen(protectedServer)];
const resource = `${base}/mcp`;

const provider = new Provider(issuer, {
  cookies: { keys: ['only-for-tests'] },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, indicator) => {
        if (indicator !== resource) throw new errors.InvalidTarget();
        const accessTokenTTL = settings.lifetime;
        return { scope: 'tools', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL };
      },
    },
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  ttl: { Grant: 86400, Interaction: 600, RefreshToken: 86400, Session: 86400 },
});
provider.on('grant.success', (context) => seen.grants.push(context.oidc.params.grant_type));
provider.on('grant.error', (_, error) => seen.refusals.push(error.error));
provider.on('server_error', (_, error) => console.error(error));

// The user signs in and agrees.
async function interact(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    const login = { accountId: settings.user };
    return provider.interactionFinished(request, response, { login });
  }
  const { accountId } = session;
  const known = grantId && (await provider.Grant.find(grantId));
  const grant = known || new provider.Grant({ accountId, clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  if (missingOIDCScope.length > 0) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [indicator, scopes] of Object.entries(missingResourceScopes)) {
    grant.addResourceScope(indicator, scopes.join(' '));
  }
  const consent = { grantId: await grant.save() };
  const options = { mergeWithLastSubmission: true };
  return provider.interactionFinished(request, response, { consent }, options);
}

const answerToBrowsersAndClients = provider.callback();
authorization.on('request', async (request, response) => {
  if (request.url.startsWith('/interaction/')) return interact(request, response);
  if (request.url === '/token' && settings.delay > 0) {
    await new Promise((done) => setTimeout(done, settings.delay));
  }
  return answerToBrowsersAndClients(request, response);
});

const json = (response, status, value, headers = {}) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(value === undefined ? '' : JSON.stringify(value));
};

// The result of a request of MCP 2026-07-28.
function result(message, account) {
  switch (message.method) {
    case 'server/discover':
      return { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } };
    case 'tools/list':
      return { tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] };
    case 'tools/call':
      return { content: [{ type: 'text', text: account }] };
    default:
      return {};
  }
}

async function serve(request, response, body) {
  const sent = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
  const token = await provider.AccessToken.find(sent);
  const isGood = token && token.aud === resource && token.scope?.split(' ').includes('tools');
  if (!isGood || settings.expired.includes(sent)) {
    const metadata = `${base}/.well-known/oauth-protected-resource/mcp`;
    return json(response, 401, undefined, {
      'www-authenticate': `Bearer resource_metadata="${metadata}"`,
    });
  }
  const message = JSON.parse(body);
  if (message.id === undefined) return json(response, 202);
  const value = { resultType: 'complete', ...result(message, token.accountId) };
  return json(response, 200, { jsonrpc: '2.0', id: message.id, result: value });
}

protectedServer.on('request', async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  if (request.url === '/.well-known/oauth-protected-resource/mcp') {
    const servers = { authorization_servers: [issuer], scopes_supported: ['tools'] };
    return json(response, 200, { resource, ...servers });
  }
  if (request.url === '/test') {
    Object.assign(settings, JSON.parse(body));
    return json(response, 200, seen);
  }
  if (request.url !== '/mcp' || request.method !== 'POST') return json(response, 405);
  return serve(request, response, body);
});

console.log(JSON.stringify({ issuer, base }));
// It ends with the test, whose end closes the pipe.
process.stdin.resume().on('end', () => process.exit());
