// Runs `true` in the vendor's sandbox runtime, by its documented interface, and prints the time of each run in nanoseconds.
// Its proxies are started once, as in a session; the time of Node's own start does not count.
// Arguments: the folder with the packages, the number of runs, the folder to work in.
import { spawnSync } from 'node:child_process'
import { pathToFileURL } from 'node:url'
const [packages, rounds, folder] = process.argv.slice(2)
const entry = `${packages}/node_modules/@anthropic-ai/sandbox-runtime/dist/index.js`
const { SandboxManager } = await import(pathToFileURL(entry))
await SandboxManager.initialize({
  network: { allowedDomains: [], deniedDomains: [] },
  filesystem: { denyRead: [], allowWrite: [folder], denyWrite: [] },
})
const times = []
for (let round = 0; round < Number(rounds); round += 1) {
  const begun = process.hrtime.bigint()
  const command = await SandboxManager.wrapWithSandbox('true')
  const { status } = spawnSync('/bin/bash', ['-c', command], { cwd: folder, stdio: 'ignore' })
  if (status !== 0) throw new Error(`true ended with ${status}: ${command}`)
  times.push(Number(process.hrtime.bigint() - begun))
}
console.log(JSON.stringify(times))
await SandboxManager.reset()
