// Checks events with the official clients of AG-UI: their validators, and their rules about the order of events.
//
// Reads lines of JSON from stdin: {name, old, whole, events}. With `old` it uses the client from before 1.0; with `whole`
// the events must be a whole run. Writes one line per fault; the exit code is 1 if there is any.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.env.OSTLER_AGUI_PEERS}/node_modules/x.js`);
const requireOld = createRequire(require.resolve("ag-ui-client-old"));
const client = require("@ag-ui/client");
const { EventSchema } = require("@ag-ui/core/schemas");
const old = require("ag-ui-client-old");
const { EventSchemas } = requireOld("@ag-ui/core");
const rxjs = createRequire(require.resolve("@ag-ui/client"))("rxjs");
const rxjsOld = requireOld("rxjs");

let judged = 0;
let faults = 0;
let name = "";
const fault = (what) => {
  faults += 1;
  console.log(`${name}: ${what}`);
};
// A client warns about fields and members that it removes because they are not declared.
console.warn = (...parts) => fault(parts.join(" "));

const runs = (rx, steps, events) =>
  new Promise((resolve) => {
    rx.from(events)
      .pipe(...steps)
      .subscribe({ error: (error) => resolve(error.message), complete: () => resolve(null) });
  });

async function judge(sample) {
  for (const event of sample.events) {
    const parsed = (sample.old ? EventSchemas : EventSchema).safeParse(event);
    if (!parsed.success) fault(`${JSON.stringify(event)}: ${parsed.error.message}`);
    judged += 1;
  }
  const steps = sample.old ? [] : [client.enforceEvents()];
  if (sample.whole) {
    const peer = sample.old ? old : client;
    steps.push(peer.transformChunks(false), peer.verifyEvents(false));
  }
  const wrong = await runs(sample.old ? rxjsOld : rxjs, steps, sample.events);
  if (wrong) fault(wrong);
}

for await (const line of createInterface({ input: process.stdin })) {
  const sample = JSON.parse(line);
  name = sample.name;
  await judge(sample);
}
console.log(`judged ${judged}`);
process.exit(faults ? 1 : 0);
