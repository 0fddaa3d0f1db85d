// A very long session: smoothness is measured and printed, and its preconditions are checked.

import assert from "node:assert/strict";
import { PATIENCE } from "../browser.mjs";
import { lastSaid } from "../model.mjs";

const PAIRS = 5_000;
const WORDS = 600;

/** Reasoning and texts make ten thousand messages; then one answer is streamed word by word. */
function script(asked) {
  if (lastSaid(asked).startsWith("begin")) {
    const text = "Some **text** with `code` that fills a line or two, as answers do, and then some more of it.";
    return { parts: Array.from({ length: PAIRS }, (_, index) => ({ thinking: `Thought ${index}`, text: `${index}: ${text}` })) };
  }
  const words = Array.from({ length: WORDS }, (_, index) => `**word${index}** and then \`code\`${index % 20 === 19 ? "\n\n" : " "}`);
  return { text: words.join(""), between: () => new Promise((done) => setTimeout(done, 3)) };
}

export default {
  "ten thousand messages scroll and stream smoothly": {
    script,
    async run({ server, visit }) {
      const session = await server.call("POST", "/api/sessions", { title: "Long" });
      const run = await server.call("POST", `/api/sessions/${session.id}/runs`, { prompt: "begin" });
      await over(server, run.id);
      const visitor = await visit();
      const { page } = visitor;
      await visitor.go(`#/chat/${session.id}`);
      await page.getByText(`${PAIRS - 1}: Some`).waitFor();
      const rows = () => page.locator(".row").count();
      assert.ok((await rows()) < 60, "only rows near the viewport are drawn");

      await visitor.say("now tell");
      const streamed = await page.evaluate(framesUntil, `word${WORDS - 1}`);
      await visitor.rest();
      tell("streaming", streamed);
      assert.ok((await rows()) < 60);
      assert.ok(await page.getByText(`word${WORDS - 1}`).isVisible(), "the end stayed in view");

      tell("scrolling as a wheel does", await page.evaluate(scrollOn));
      assert.ok((await rows()) < 60);
      tell("flying from the end to the beginning", await page.evaluate(scrollThrough));
      await page.getByText("begin", { exact: true }).waitFor();
      assert.ok((await rows()) < 60, "at the other end too");
      await page.locator(".scroll").evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await page.getByText(`word${WORDS - 1}`).waitFor();
    },
  },
};

/** Figures that depend on the machine are only printed, not asserted. */
function tell(what, frames) {
  const sorted = [...frames].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))].toFixed(1);
  console.log(`10,000 messages, ${what}: ${sorted.length} frames, median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(1)} ms`);
}

async function over(server, run) {
  for (const end = Date.now() + 10 * PATIENCE; Date.now() < end; ) {
    const { state, outcome } = await server.call("GET", `/api/runs/${run}`);
    if (state === "completed") return;
    assert.ok(["queued", "running"].includes(state), `${state}: ${JSON.stringify(outcome)}`);
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.fail("the run did not end");
}

/** How long each frame takes until a text appears. */
async function framesUntil(text) {
  const box = document.querySelector(".list");
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  while (!box.lastElementChild?.textContent.includes(text)) {
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return frames;
}

/** Scrolls up from the end, a few lines at a time. */
async function scrollOn() {
  const box = document.querySelector(".scroll");
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (let step = 0; step < 200; step += 1) {
    box.scrollTop -= 120;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  return frames;
}

/** Scrolls from the end to the beginning and returns how long each frame took. */
async function scrollThrough() {
  const box = document.querySelector(".scroll");
  const frames = [];
  let before = await new Promise(requestAnimationFrame);
  for (let step = 200; step >= 0; step -= 1) {
    box.scrollTop = (box.scrollHeight * step) / 200;
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - before);
    before = now;
  }
  // Estimated rows are measured when they come into view, which may move the beginning.
  for (let times = 0; times < 10; times += 1) {
    box.scrollTop = 0;
    await new Promise(requestAnimationFrame);
  }
  return frames;
}
