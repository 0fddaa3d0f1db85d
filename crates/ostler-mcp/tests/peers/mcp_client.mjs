// Drives an MCP program, or a server at an address, with the official TypeScript client and prints what it saw as one JSON object.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const require = createRequire(path.join(process.env.OSTLER_PEERS, 'package.json'));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');

const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const client = new Client({ name: 'peer', version: '1.0.0' });
const target = process.argv[2];
const isAddress = target.startsWith('http://');
await client.connect(
  isAddress ? new StreamableHTTPClientTransport(new URL(target)) : new StdioClientTransport({ command: target }),
);

const { name, version } = client.getServerVersion();
const { tools } = await client.listTools();
const call = (tool, args, options) => client.callTool({ name: tool, arguments: args }, undefined, options);
const sum = await call('add', { a: 2, b: 3 });
const wrong = await call('add', { a: 2, b: 'x' });

const progress = [];
await call('count', {}, { onprogress: (step) => progress.push(step.progress) });

const abort = new AbortController();
const hanging = call('hang', {}, { signal: abort.signal });
await client.ping();
abort.abort();
const cancelled = await hanging.then(() => false, () => true);

const unknownTool = await call('sub', {}).then(() => 0, (error) => error.code);
const resource = await client.readResource({ uri: 'calc://pi' });
const prompt = await client.getPrompt({ name: 'explain', arguments: { what: 'rain' } });
const calls = Array.from({ length: 50 }, (_, a) => call('add', { a, b: 1 }));
const sums = await Promise.all(calls);

console.log(JSON.stringify({
  server: { name, version },
  instructions: client.getInstructions(),
  tools: tools.map((tool) => tool.name),
  readOnly: tools[0].annotations.readOnlyHint,
  sum: sum.content[0].text,
  wrong: { isError: wrong.isError, text: wrong.content[0].text },
  progress,
  cancelled,
  unknownTool,
  resource: resource.contents[0].text,
  prompt: prompt.messages[0].content.text,
  together: sums.filter((answer, a) => answer.content[0].text === String(a + 1)).length,
}));
await client.close();
