// One prompt through the official TypeScript SDK; prints its messages, one JSON object per line.
// Usage: SDK_MODULE=<sdk.mjs> node replay.mjs <executable> <extra arguments as JSON>

const { query } = await import(process.env.SDK_MODULE);
const [executable, extraArgs] = process.argv.slice(2);

const options = {
  pathToClaudeCodeExecutable: executable,
  extraArgs: JSON.parse(extraArgs),
  includePartialMessages: true,
  allowedTools: ['Read'],
};
for await (const message of query({ prompt: 'go', options })) {
  const said = message.event?.delta ?? message.message?.content ?? message.result ?? null;
  console.log(JSON.stringify([message.type, message.subtype ?? null, said]));
}
