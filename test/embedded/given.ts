import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, chown, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, onTestFinished } from 'vitest'
import { removeEmbedded } from '#holdfast/embedded/embedded'
import { tagOf } from '#holdfast/embedded/home'
import { processes } from '#holdfast/embedded/process-table'

export const isRoot = process.getuid?.() === 0

/** An ordinary account: `nobody` if we are root, otherwise our own. */
export const user = isRoot ? accountOf('nobody') : { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }

// Removed after the last test of a file and not between tests: for some seconds after many files were deleted, ext4 is slow to create
// new ones.
const folders: string[] = []
afterAll(async () => {
  for (const folder of folders.reverse()) await removeEmbedded(folder).catch(() => {})
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
})

/** Creates an empty folder that everyone may enter. It is removed in the end, together with its data elsewhere. */
export async function newFolder(
  options: { owner?: { uid: number; gid: number }; mode?: number } = {},
): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'holdfast-test-')))
  folders.push(folder)
  await chmod(folder, options.mode ?? 0o755)
  if (options.owner) await chown(folder, options.owner.uid, options.owner.gid)
  return folder
}

/** The same, for a folder that only root can reach. */
export async function newFolderOutOfReach(): Promise<string> {
  const folder = join(await newFolder({ mode: 0o700 }), 'data')
  folders.push(folder)
  return folder
}

/** Stops something at the end of the test, even if it fails. */
export function stopLater<T extends { stop(): Promise<void> }>(thing: T): T {
  onTestFinished(() => thing.stop())
  return thing
}

export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(url)
  client.on('error', () => {}) // the server may be killed under it
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** Asks repeatedly until the answer is truthy and no error is thrown, and returns it. */
export async function eventually<T>(
  ask: () => T | Promise<T>,
  what: string,
  withinMs = 15_000,
): Promise<NonNullable<T>> {
  const until = performance.now() + withinMs
  let last: unknown
  while (performance.now() < until) {
    try {
      const answer = await ask()
      if (answer) return answer
    } catch (error) {
      last = error
    }
    await sleep(10)
  }
  throw new Error(`${what}: not within ${withinMs} ms.`, { cause: last })
}

/** The live processes that belong to the data in a folder. */
export async function processesOf(home: string): Promise<{ pid: number; command: string }[]> {
  const tag = await tagOf(home)
  return processes().filter(({ command }) => command.includes(tag))
}

export async function nothingRunsIn(home: string): Promise<void> {
  await eventually(async () => (await processesOf(home)).length === 0, `nothing runs in ${home}`)
}

/** The pids in the folder's record. */
export async function pidsOf(home: string): Promise<{ postgres: number; keeper: number; port: number }> {
  return JSON.parse(await readFile(join(home, 'embedded.json'), 'utf8'))
}

export interface Owner {
  pid: number
  child: ChildProcess
  lines: Record<string, unknown>[]
  /** How its start went. */
  outcome: Promise<{ ready?: { url: string; dir: string }; failed?: { code: string; message: string } }>
  exited: Promise<unknown>
  kill(signal: NodeJS.Signals): Promise<void>
}

/** Starts a process that owns an embedded Postgres; see owner.mjs. */
export function spawnOwner(
  dir: string,
  options: { manner?: string; as?: { uid: number; gid: number }; project?: string; wrap?: string[] } = {},
): Owner {
  const script = options.project
    ? join(options.project, 'owner.mjs')
    : fileURLToPath(new URL('owner.mjs', import.meta.url))
  const [command = '', ...args] = [...(options.wrap ?? []), process.execPath, script, dir, options.manner ?? 'careful']
  const child = spawn(command, args, {
    ...options.as,
    cwd: '/',
    detached: true,
    env: { ...process.env, HOME: options.project ?? process.env.HOME, XDG_CACHE_HOME: '' },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines: Record<string, unknown>[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  const owner: Owner = {
    pid: child.pid ?? 0,
    child,
    lines,
    exited: once(child, 'exit'),
    outcome: eventually(
      () => lines.find((line) => line.ready || line.failed),
      'the owner says how its start went',
      25_000,
    ),
    kill: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill(signal)
      await owner.exited
    },
  }
  owner.outcome.catch(() => {}) // not every test asks
  onTestFinished(() => owner.kill('SIGKILL'))
  return owner
}

/** An owner whose server runs. */
export async function runningOwner(dir: string, options?: Parameters<typeof spawnOwner>[1]) {
  const owner = spawnOwner(dir, options)
  const { ready, failed } = await owner.outcome
  if (!ready) throw new Error(`The owner failed: ${failed?.message}`)
  return { ...owner, ...ready }
}

function accountOf(name: string): { uid: number; gid: number } {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => each.startsWith(`${name}:`))
  const [, , uid, gid] = line?.split(':') ?? []
  return { uid: Number(uid), gid: Number(gid) }
}
