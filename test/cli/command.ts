import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { devNull, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { removeEmbedded } from '#holdfast/embedded/embedded'
import { birthOf } from '#holdfast/embedded/process-table'
import { until } from '../until.ts'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const each = fileURLToPath(new URL('each.mjs', import.meta.url))
/** The library as a module outside of the project would import it. */
export const library = new URL('../../dist/index.js', import.meta.url).href

const patienceMs = 25_000

/** How a command is called. */
export interface CallOptions {
  cwd?: string
  env?: Record<string, string>
  stdin?: string
  /** Whether it can't write its output, as on a full disk. */
  isMute?: boolean
}

/** How a command ended, and what it said. */
export interface Called {
  code: number | null
  stdout: string
  stderr: string
}

/** A folder outside of any project, so that no data folder is found by chance. */
export async function newFolder(): Promise<string> {
  return realpath(await mkdtemp(join(tmpdir(), 'holdfast-cli-')))
}

/** Removes a folder and the data of an embedded Postgres that belongs to it. */
export async function removeFolder(folder: string): Promise<void> {
  await removeEmbedded(join(folder, '.holdfast')).catch(() => {})
  await rm(folder, { recursive: true, force: true })
}

/** A module in a folder of its own, gone with the test. */
export async function moduleOf(code: string, name = 'jobs.mjs'): Promise<string> {
  const folder = await newFolder()
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, name)
  await writeFile(path, code)
  return path
}

function start(args: readonly string[], { cwd, env, isMute }: CallOptions): ChildProcess {
  // a file that is open only for reading refuses each write
  const unwritable = openSync(devNull, 'r')
  const output = isMute ? unwritable : 'pipe'
  // a group of its own, as a terminal gives to each command
  const child = spawn(process.execPath, [main, ...args], {
    cwd: cwd ?? tmpdir(),
    env: environment({ env }),
    detached: true,
    stdio: ['pipe', output, output],
  })
  closeSync(unwritable)
  return child
}

function environment({ env }: CallOptions): NodeJS.ProcessEnv {
  return {
    ...process.env,
    HOLDFAST_URL: '',
    HOLDFAST_DATA_DIR: '',
    HOLDFAST_LOG_LEVEL: '',
    NO_COLOR: '',
    // the connections that fetch keeps are not waited for
    HOLDFAST_HTTP_DRAIN_MS: '0',
    ...env,
  }
}

/** Runs a command to its end. */
export async function call(args: readonly string[], options: CallOptions = {}): Promise<Called> {
  const child = start(args, options)
  child.stdin?.end(options.stdin ?? '')
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, 'exit'),
  ])
  return { code, stdout, stderr }
}

/** Runs many commands in one process, one after the other. For those that end soon. */
export async function callEach(lines: readonly (readonly string[])[], options: CallOptions = {}): Promise<Called[]> {
  const child = spawn(process.execPath, [each, JSON.stringify(lines)], {
    cwd: tmpdir(),
    env: environment(options),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return JSON.parse(await text(child.stdout))
}

/** Runs a command with --json and answers what it says. */
export async function ask<T>(args: readonly string[], options: CallOptions = {}): Promise<T> {
  const { stdout, stderr, code } = await call([...args, '--json'], options)
  if (stdout === '') throw new Error(`holdfast ${args.join(' ')} ended with code ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

/** A command that runs on. */
export interface Running {
  pid: number
  output(): string
  /** Waits for a line that matches and gives the match. */
  says(pattern: RegExp): Promise<RegExpMatchArray>
  /** Sends a signal to all processes of its terminal's group, as Ctrl-C does. */
  signalGroup(signal: NodeJS.Signals): void
  signal(signal: NodeJS.Signals): void
  /** Reads its standard output no longer, as `head` does that has seen enough. */
  closeOutput(): void
  /** Its exit code, or the signal that ended it. */
  exited: Promise<number | NodeJS.Signals>
}

/** Starts a command that runs on; whatever is left of it goes with the test. */
export function run(args: readonly string[], options: CallOptions = {}): Running {
  return follow(start(args, options))
}

/** Starts a command on a terminal of that size. Its keys are what `type` is given; what it draws is its output. */
export function runOnTerminal(
  args: readonly string[],
  size: { columns: number; rows: number },
  options: CallOptions = {},
): Running & { type(keys: string): void } {
  const child = spawn(
    'python3',
    [
      '-c',
      'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)',
      'sh',
      '-c',
      `stty cols ${size.columns} rows ${size.rows}; exec "$@"`,
      'sh',
      process.execPath,
      main,
      ...args,
    ],
    { env: { ...environment(options), TERM: 'xterm' }, detached: true, stdio: ['pipe', 'pipe', 'pipe'] },
  )
  return { ...follow(child), type: (keys) => void child.stdin?.write(keys) }
}

function follow(child: ChildProcess): Running {
  const pid = child.pid ?? 0
  onTestFinished(() => endGroup(pid))
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (piece) => (output += piece))
  const exited = once(child, 'exit').then(([code, signal]) => signal ?? code)
  return {
    pid,
    output: () => output,
    says: async (pattern) => {
      const heard = () => output.match(pattern)
      const isOver = () => child.exitCode !== null || child.signalCode !== null
      await until(() => heard() !== null || isOver(), String(pattern), patienceMs).catch(() => {})
      return heard() ?? Promise.reject(new Error(`It does not say ${pattern}:\n${output}`))
    },
    signalGroup: (signal) => process.kill(-pid, signal),
    signal: (signal) => child.kill(signal),
    closeOutput: () => void child.stdout?.destroy(),
    exited,
  }
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {} // nothing is left of it
}

/** Whether a process lives; a zombie does not. */
export function isAlive(pid: number): boolean {
  return birthOf(pid) !== undefined
}

/** Waits until none of these processes lives. */
export async function allGone(pids: readonly number[]): Promise<void> {
  await until(() => !pids.some(isAlive), `the end of ${pids.filter(isAlive).join(', ')}`)
}
