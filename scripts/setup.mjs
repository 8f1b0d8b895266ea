// Makes a fresh clone ready to run. It may use nothing but Node itself, since it runs before anything is installed.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of the project, wherever the script was started from. */
export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '')

const lockFile = join(root, 'package-lock.json')
const installStamp = join(root, 'node_modules', '.holdfast-lock-hash')
const buildStamp = join(root, 'dist', '.holdfast-build.json')

/** A set-up step that failed; its message tells the user what to do. */
export class SetupError extends Error {}

/** Installs and builds whatever is missing or stale. */
export function setup() {
  install()
  build()
}

/** Runs a script's main part, and turns a failed set-up into a sentence and an exit code instead of a stack. */
export async function main(run) {
  try {
    process.exitCode = await run()
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    console.error(`\n✗ ${error.message}`)
    process.exitCode = 1
  }
}

/** Installs the dependencies if they are missing or do not match the lock. */
export function install() {
  requireNode(20, 19)
  const wanted = hash([lockFile])
  if (read(installStamp) === wanted) return
  if (!installedByHand()) {
    console.log('Installing dependencies (npm ci) …')
    const startedAt = Date.now()
    npmCi()
    console.log(`Installed in ${seconds(startedAt)}.`)
  }
  writeFileSync(installStamp, wanted)
}

/** Compiles src/ into dist/ if dist/ is missing or src/ has changed. */
export function build() {
  const sources = sourceFiles()
  const wanted = hash([...sources, join(root, 'tsconfig.json'), join(root, 'tsconfig.build.json'), lockFile])
  const last = JSON.parse(read(buildStamp) ?? 'null')
  if (last?.hash === wanted) return
  console.log('Building dist/ (tsc) …')
  const startedAt = Date.now()
  // Without our stamp nobody knows what is in dist/, and tsc would trust a .tsbuildinfo whose outputs may be gone.
  if (!last) rmSync(join(root, 'dist'), { recursive: true, force: true })
  compile()
  const names = sources.map(nameInSrc)
  for (const gone of (last?.sources ?? []).filter((name) => !names.includes(name))) removeOutputs(gone)
  const main = join(root, 'dist', 'cli', 'main.js')
  if (existsSync(main)) chmodSync(main, 0o755)
  mkdirSync(join(root, 'dist'), { recursive: true })
  writeFileSync(buildStamp, JSON.stringify({ hash: wanted, sources: names }))
  console.log(`Built in ${seconds(startedAt)}.`)
}

function requireNode(major, minor) {
  const [haveMajor, haveMinor] = process.versions.node.split('.').map(Number)
  if (haveMajor > major || (haveMajor === major && haveMinor >= minor)) return
  throw new SetupError(
    `Holdfast needs Node ${major}.${minor} or later, and this is ${process.version}. Please upgrade.`,
  )
}

// True after a plain `npm ci`: npm's own record of what it installed then holds all that the lock demands. Without this,
// an image that was prepared with `npm ci` would need the network again.
function installedByHand() {
  const record = read(join(root, 'node_modules', '.package-lock.json'))
  if (!record) return false
  const have = JSON.parse(record).packages
  const wanted = Object.entries(JSON.parse(readFileSync(lockFile, 'utf8')).packages)
  return wanted.every(([path, { version, optional }]) => {
    if (path === '' || (optional && !have[path])) return true
    return have[path]?.version === version
  })
}

function npmCi() {
  const env = { ...process.env }
  // Set to production it would leave out what building and testing need.
  delete env.NODE_ENV
  const flags = ['ci', '--include=dev', '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund']
  const [command, args, shell] = npmCommand()
  const result = spawnSync(command, [...args, ...flags], {
    cwd: root,
    env,
    shell,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (result.status === 0) return
  printTail(result)
  throw new SetupError(
    'The dependencies could not be installed. Check that the npm registry can be reached (npm ping) and that the disk ' +
      'has room, then run the same command again; `npm ci` shows the whole output.',
  )
}

// The npm that runs us knows its own path; that saves a look-up, and a shell on Windows.
function npmCommand() {
  const own = process.env.npm_execpath
  if (own?.endsWith('npm-cli.js') && existsSync(own)) return [process.execPath, [own], false]
  return ['npm', [], process.platform === 'win32']
}

function compile() {
  const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
  const result = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, encoding: 'utf8' })
  if (result.status === 0) return
  printTail(result)
  throw new SetupError('The code does not compile. Fix the errors above, then run the command again.')
}

function printTail({ stdout, stderr, error }) {
  const lines = `${stdout ?? ''}${stderr ?? ''}${error ? `${error.message}\n` : ''}`.trimEnd().split('\n')
  console.error(lines.slice(-40).join('\n'))
}

function sourceFiles() {
  const src = join(root, 'src')
  if (!existsSync(src)) return []
  return readdirSync(src, { recursive: true })
    .map((name) => join(src, name))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && statSync(path).isFile())
    .sort()
}

function nameInSrc(path) {
  return path.slice(join(root, 'src').length + 1).replaceAll('\\', '/')
}

// tsc never deletes: a test could go on importing a module whose source is gone.
function removeOutputs(name) {
  for (const ending of ['.js', '.js.map', '.d.ts']) {
    rmSync(join(root, 'dist', name.replace(/\.ts$/, ending)), { force: true })
  }
}

function hash(paths) {
  const sum = createHash('sha256')
  for (const path of paths) sum.update(path.slice(root.length)).update('\0').update(readFileSync(path)).update('\0')
  return sum.digest('hex')
}

function read(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

/** How long ago a moment was, for people. */
export function seconds(startedAt) {
  return `${((Date.now() - startedAt) / 1000).toFixed(1)} s`
}
