// Runs the tests in a real browser against a real server, each with both for itself. Prints what `cargo test` prints, so
// that whoever counts tests can count these.
//
//     OSTLER_PROGRAM=target/debug/ostler node e2e/main.mjs [WORDS OF A NAME]

import { readdirSync, mkdirSync } from "node:fs";
import { Visitor, launch } from "./browser.mjs";
import { Model } from "./model.mjs";
import { Server } from "./server.mjs";

if (!process.env.OSTLER_PROGRAM) throw new Error("set OSTLER_PROGRAM to the program to test");
const wanted = process.argv.slice(2).join(" ");
const here = new URL("./tests/", import.meta.url);
const tests = [];
for (const file of readdirSync(here).sort()) {
  const { default: list } = await import(new URL(file, here));
  const area = file.replace(/\.mjs$/, "");
  for (const [name, test] of Object.entries(list)) tests.push([`page::${area}::${name.replaceAll(" ", "_")}`, test]);
}

const browser = await launch();
let passed = 0;
const failures = [];
for (const [name, test] of tests.filter(([name]) => name.includes(wanted.replaceAll(" ", "_")))) {
  // A test that speaks for the model has its script beside it.
  const { script, run = test } = test;
  const model = script && (await new Model(script).start());
  const server = new Server({ model });
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
    failures.push([name, error]);
    console.error(`${name}: ${error.stack ?? error}\nserver: ${server.errors?.slice(-2000)}`);
    mkdirSync("test-results", { recursive: true });
    for (const [index, { page, problems }] of visitors.entries()) {
      const picture = `test-results/${name.replaceAll("::", "-")}-${index}.png`;
      await page.screenshot({ path: picture }).catch(() => {});
      if (problems.length > 0) console.error(`browser ${index}: ${problems.join("\n")}`);
    }
  } finally {
    for (const { context } of visitors) await context.close().catch(() => {});
    await server.end();
    await model?.end();
  }
}
await browser.close();
console.log(`test result: ${failures.length ? "FAILED" : "ok"}. ${passed} passed; ${failures.length} failed`);
process.exit(failures.length ? 1 : 0);
