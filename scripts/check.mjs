// `npm run check`: all static checks.
import { spawnSync } from 'node:child_process'
import { generators } from './generators.mjs'
import { build, install, main, root, SetupError, seconds } from './setup.mjs'

const colors = `--colors=${process.stdout.isTTY ? 'force' : 'off'}`
const checks = [
  { name: 'build', run: buildStep },
  {
    name: 'lint and format',
    run: () => node('node_modules/@biomejs/biome/bin/biome', 'ci', '--error-on-warnings', colors),
  },
  { name: 'types', run: () => node('node_modules/typescript/bin/tsc', '--noEmit', '-p', 'tsconfig.json') },
  { name: 'layers', run: () => node('scripts/layers.mjs') },
  { name: 'lock', run: () => node('scripts/lock.mjs') },
  { name: 'generated files', run: () => generators().every((script) => node(script, '--check')) },
  { name: 'docs site', run: () => node('node_modules/vitepress/bin/vitepress.js', 'build', 'docs') },
]

await main(() => {
  install()
  const results = checks.map(measure)
  console.log('')
  for (const { name, isGood, took } of results) console.log(`${isGood ? '✓' : '✗'} ${name.padEnd(18)} ${took}`)
  return results.every(({ isGood }) => isGood) ? 0 : 1
})

function measure({ name, run }) {
  const startedAt = Date.now()
  const isGood = run()
  return { name, isGood, took: seconds(startedAt) }
}

// A tree that does not compile can still be linted, so the other checks go on.
function buildStep() {
  try {
    build()
    return true
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return false
  }
}

function node(...args) {
  const result = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (result.status === 0) return true
  process.stdout.write(`\n${result.stdout ?? ''}${result.stderr ?? ''}`)
  return false
}
