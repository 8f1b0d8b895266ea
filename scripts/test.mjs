// `npm test`: every test, from a fresh clone. Its last line is always "N passed, N failed".
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { follow } from './follow.mjs'
import { scratchFolder } from './scratch.mjs'
import { main, setup } from './setup.mjs'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
const tallyFile = join(folder, 'tally.json')
// What counts if no test could be run at all: a missing tally must never look like a success.
let tally = { passed: 0, failed: 1 }

await main(async () => {
  setup()
  const code = await follow(['node_modules/vitest/vitest.mjs', 'run', ...reporters(), ...process.argv.slice(2)], {
    HOLDFAST_TALLY_FILE: tallyFile,
    TMPDIR: scratchFolder(),
  })
  tally = readTally(code)
  return code === 0 && tally.failed > 0 ? 1 : code
})
rmSync(folder, { recursive: true, force: true })
console.log(`${tally.passed} passed, ${tally.failed} failed`)

function reporters() {
  const own = process.argv.some((arg) => arg.startsWith('--reporter')) ? [] : ['--reporter=default']
  return [...own, '--reporter=./scripts/tally-reporter.mjs']
}

function readTally(code) {
  try {
    const { passed, failed } = JSON.parse(readFileSync(tallyFile, 'utf8'))
    return { passed, failed: code === 0 ? failed : Math.max(failed, 1) }
  } catch {
    return tally
  }
}
