// Asks once through the official TypeScript SDK and prints how long the first message and the result took to come.

const { query } = await import(process.env.SDK_MODULE);

const options = { pathToClaudeCodeExecutable: process.env.ENGINE, model: process.env.MODEL };
const told = { text: '' };
const start = process.hrtime.bigint();
const elapsed = () => Number((process.hrtime.bigint() - start) / 1000n);
for await (const message of query({ prompt: 'Say hello', options })) {
  if (message.type === 'system' && message.subtype === 'init') {
    told.init_us ??= elapsed();
  } else if (message.type === 'result') {
    told.result_us = elapsed();
    told.text = message.result;
  }
}
told.end_us = elapsed();
console.log(JSON.stringify(told));
