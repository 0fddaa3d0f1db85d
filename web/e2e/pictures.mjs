// The pictures in the README, made from a real conversation with the offline model:
//
//     OSTLER_PROGRAM=../target/debug/ostler node e2e/pictures.mjs ../docs/pictures

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Visitor, launch } from "./browser.mjs";
import { Server } from "./server.mjs";

const folder = process.argv[2];
if (!folder) throw new Error("say where the pictures go");
mkdirSync(folder, { recursive: true });
const server = await new Server().start();
const browser = await launch();
const take = (visitor, name) => visitor.page.screenshot({ path: join(folder, `${name}.png`), animations: "disabled" });

const desk = await (await Visitor.come(browser, server, { viewport: { width: 1100, height: 700 }, colorScheme: "light" })).enter();
await desk.say("list the files, then replace Nothing with Everything in README.md");
await desk.card().waitFor();
await take(desk, "chat");

const phone = { viewport: { width: 390, height: 700 }, colorScheme: "dark", isMobile: true, hasTouch: true };
const pocket = await (await Visitor.come(browser, server, phone)).enter();
await pocket.say("ask me which colour I like: red, green or blue");
await pocket.page.getByRole("group", { name: /question/ }).waitFor();
await pocket.go("#/inbox");
await pocket.card().waitFor();
await take(pocket, "inbox");

await browser.close();
await server.end();
