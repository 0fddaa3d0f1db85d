// Runs the tests in a real browser against a real server; each test has its own browser and server. Prints what `cargo test`
// prints, so that the test runner can count them.
//
//     OSTLER_PROGRAM=target/debug/ostler node e2e/main.mjs [WORDS OF A NAME]

import { mkdirSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Visitor, launch } from "./browser.mjs";
import { Model } from "./model.mjs";
import { Server } from "./server.mjs";

if (!process.env.OSTLER_PROGRAM) throw new Error("set OSTLER_PROGRAM to the program to test");
/** Measurements run alone on the machine. */
const ALONE = "page::long::";
const wanted = process.argv.slice(2).join(" ").replaceAll(" ", "_");
const tests = (await collected()).filter(([name]) => name.includes(wanted));
const browser = await launch();
let passed = 0;
let failed = 0;

const together = tests.filter(([name]) => !name.startsWith(ALONE));
const perform = async () => {
  for (let next = together.shift(); next; next = together.shift()) await attempt(...next);
};
await Promise.all(Array.from({ length: Math.min(3, availableParallelism()) }, perform));
for (const test of tests.filter(([name]) => name.startsWith(ALONE))) await attempt(...test);
await browser.close();
console.log(`test result: ${failed ? "FAILED" : "ok"}. ${passed} passed; ${failed} failed`);
// A name that no test has is a mistake, not a success.
process.exit(failed || passed === 0 ? 1 : 0);

async function collected() {
  const here = new URL("./tests/", import.meta.url);
  const found = [];
  for (const file of readdirSync(here).sort()) {
    const { default: list } = await import(new URL(file, here));
    const area = file.replace(/\.mjs$/, "");
    for (const [name, test] of Object.entries(list)) found.push([`page::${area}::${name.replaceAll(" ", "_")}`, test]);
  }
  return found;
}

async function attempt(name, test) {
  // A test that scripts the model, or needs other settings, has them next to it.
  const { script, settings, run = test } = test;
  const model = script && (await new Model(script).start());
  const server = new Server({ model, settings });
  const visitors = [];
  try {
    await server.start();
    const visit = async (options = {}) => {
      const visitor = await Visitor.come(browser, server, options);
      visitors.push(visitor);
      return options.stays_out ? visitor : visitor.enter();
    };
    await run({ server, model, visit, browser });
    for (const visitor of visitors) await visitor.leave();
    console.log(`test ${name} ... ok`);
    passed += 1;
  } catch (error) {
    console.log(`test ${name} ... FAILED`);
    failed += 1;
    await explain(name, error, server, visitors);
  } finally {
    for (const { context } of visitors) await context.close().catch(() => {});
    await server.end();
    await model?.end();
  }
}

/** The error, and what the page showed at that time. */
async function explain(name, error, server, visitors) {
  console.error(`${name}: ${error.stack ?? error}\nserver: ${server.errors?.slice(-2000)}`);
  mkdirSync("test-results", { recursive: true });
  for (const [index, { page, problems }] of visitors.entries()) {
    const picture = `test-results/${name.replaceAll("::", "-")}-${index}.png`;
    await page.screenshot({ path: picture }).catch(() => {});
    if (problems.length > 0) console.error(`browser ${index}: ${problems.join("\n")}`);
  }
}
