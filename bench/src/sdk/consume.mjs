// Reads the fake engine's stream with the official TypeScript SDK and prints what that cost.

const { query } = await import(process.env.SDK_MODULE);

const cpuUs = () => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

const options = { pathToClaudeCodeExecutable: process.env.FAKE_ENGINE, includePartialMessages: true };
let deltas = 0;
let letters = 0;
let results = 0;
const start = cpuUs();
for await (const message of query({ prompt: 'Say hello', options })) {
  if (message.type === 'stream_event') {
    if (message.event.type === 'content_block_delta') {
      deltas += 1;
      letters += message.event.delta.text.length;
    }
  } else if (message.type === 'result') {
    results += 1;
  }
}
console.log(JSON.stringify({ cpu_us: cpuUs() - start, deltas, letters, results }));
