// Asks once through the official TypeScript SDK and prints how long the first message and the result took to come.

const { query } = await import(process.env.SDK_MODULE);

const options = { pathToClaudeCodeExecutable: process.env.ENGINE, model: process.env.MODEL };
const figures = { text: '' };
const start = process.hrtime.bigint();
const elapsed = () => Number((process.hrtime.bigint() - start) / 1000n);
for await (const message of query({ prompt: 'Say hello', options })) {
  if (message.type === 'system' && message.subtype === 'init') {
    figures.init_us ??= elapsed();
  } else if (message.type === 'result') {
    figures.result_us = elapsed();
    figures.text = message.result;
  }
}
figures.end_us = elapsed();
console.log(JSON.stringify(figures));
