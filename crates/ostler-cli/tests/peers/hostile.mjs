// Sends prompts to the SDK, each in a new session, and denies all permission requests.
const { query } = await import(process.env.SDK_MODULE);
const [program, given] = process.argv.slice(2);
const { prompts, mode, extra } = JSON.parse(given);

async function run(prompt) {
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  async function* input() {
    const message = { role: "user", content: prompt };
    yield { type: "user", session_id: "", message, parent_tool_use_id: null };
    await ended;
  }
  const options = {
    pathToClaudeCodeExecutable: program,
    permissionMode: mode,
    allowDangerouslySkipPermissions: mode === "bypassPermissions",
    extraArgs: extra,
    canUseTool: async () => ({ behavior: "deny", message: "no" }),
  };
  for await (const message of query({ prompt: input(), options })) {
    if (message.type === "result") end();
  }
}

for (const prompt of prompts) await run(prompt);
console.log("all done");
