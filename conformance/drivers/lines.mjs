// Drives a CLI without any SDK: writes the given lines and reads the output. See README.md, "The driver protocol".

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const runs = new Map();

function emit(run, kind, payload) {
  process.stdout.write(`${JSON.stringify({ run, [kind]: payload })}\n`);
}

const STREAMS = ['--output-format', 'stream-json', '--verbose', '--input-format', 'stream-json'];

function start(run, { cli, cwd, env, options }) {
  const args = options.args ?? [...STREAMS, '--model', options.model];
  const child = spawn(cli, args, { cwd, env, stdio: ['pipe', 'pipe', 'pipe'] });
  // A program that refuses its input may be gone before all of it was written.
  child.stdin.on('error', () => {});
  let errors = '';
  child.stderr.on('data', (data) => (errors += data));
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      return emit(run, 'garbage', { line });
    }
    emit(run, 'message', message);
  });
  child.on('error', (error) => emit(run, 'thrown', { name: 'SpawnError', message: error.message }));
  child.on('close', () => {
    if (errors.length > 0) emit(run, 'stderr', { text: errors });
    emit(run, 'ended', {});
  });
  runs.set(run, child);
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const child = runs.get(command.run);
  if (command.do === 'start') start(command.run, command.session);
  else if (command.do === 'line') child.stdin.write(`${command.line}\n`);
  else if (command.do === 'send') child.stdin.write(`${JSON.stringify(command.message)}\n`);
  else if (command.do === 'end') child.stdin.end();
  else if (command.do === 'signal') child.kill(command.signal);
  else if (command.do === 'abort' || command.do === 'forget') child?.kill('SIGTERM');
  else throw new Error(`the driver cannot ${command.do}`);
}
process.exit(0);
