// The embedded Postgres: a server with its data in a folder, which needs no setup.
//
// Invariant: of all processes on this machine, at most one runs a server on a data folder, and when that process ends, for whatever reason, the
// server ends too. The lock of the folder (lock.ts) decides which process; the keeper (keeper.ts) ends the server with its owner; a process that
// takes over a lock ends what a killed keeper left behind (leftovers.ts). Postgres also guards its files itself, so a mistake here prevents a
// start but never harms data.

import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { HoldfastError } from '../errors/errors.ts'
import { replaceFile } from './atomic-file.ts'
import { type Binaries, findBinaries, program, readyBinaries } from './binaries.ts'
import { clusterPath, database, openCluster, readPassword } from './cluster.ts'
import { emptyHome, findHome, type Home, openHome, tagOf } from './home.ts'
import { type Keeper, launch, type Order } from './launch.ts'
import { clearLeftovers, tagArguments } from './leftovers.ts'
import { type FolderLock, holderOf, lockFolder } from './lock.ts'
import { freePort } from './port.ts'
import { settingArguments } from './settings.ts'
import { supervise } from './supervise.ts'
import { explain, explainOutput } from './trouble.ts'

const portTries = 5
const portTaken = /could not bind IPv4 address|could not create any TCP\/IP sockets/

/** A running embedded Postgres. */
export interface EmbeddedPostgres {
  url: string
  /** The folder of its data. It differs from the requested one if root had to keep the data elsewhere. */
  dir: string
  /** Stops it, and resolves when none of its processes runs any more. */
  stop(): Promise<void>
}

/** Options of an embedded Postgres. */
export interface EmbeddedOptions {
  dir: string
  log?: (line: string) => void
  /** Postgres settings that override our defaults. */
  settings?: Record<string, string>
  /** False trades safety against power cuts for speed; for tests. */
  durable?: boolean
  /** How long a server may take to accept connections, including recovery after a crash. */
  startTimeoutMs?: number
}

interface Plan {
  home: Home
  tag: string
  lock: FolderLock
  binaries: Binaries
  settings: string[]
  timeoutMs: number
  log: (line: string) => void
  /** Releases the folder. Usually nothing runs there by then, but the server of a killed keeper may. */
  free: () => Promise<void>
}

/** Starts Postgres on a folder, which is created and initialized at the first start. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  try {
    return await start(options)
  } catch (error) {
    throw explain(error, resolve(options.dir))
  }
}

/** The URL of the server that runs on a folder; undefined if none does. */
export async function findEmbedded(dir: string): Promise<string | undefined> {
  const home = await findHome(dir)
  const holder = home && (await holderOf(home.path))
  if (!holder) return undefined
  const note = await readFile(join(home.path, 'embedded.json'), 'utf8').catch(() => '{}')
  const { port, owner } = JSON.parse(note) as { port?: number; owner?: number }
  const password = await readPassword(home.path)
  return port && password && owner === holder.pid ? urlOf(port, password) : undefined
}

/** Deletes the data of a folder, wherever it is kept. Throws if a process uses it. */
export async function removeEmbedded(dir: string): Promise<void> {
  const home = await findHome(dir)
  if (!home) return
  await lockFolder(home.path, home.asked)
  await clearLeftovers(await tagOf(home.path))
  await emptyHome(home)
}

async function start(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { log = () => {}, durable = true, startTimeoutMs: timeoutMs = 180_000 } = options
  const settings = settingArguments(options.settings ?? {}, { durable })
  const installed = await findBinaries()
  const home = await openHome(options.dir, log)
  const tag = await tagOf(home.path)
  const lock = await lockFolder(home.path, home.asked)
  const free = async () => {
    await clearLeftovers(tag, log)
    await lock.release()
  }
  try {
    await clearLeftovers(tag, log)
    const binaries = await readyBinaries(installed, home.account)
    const password = await openCluster({ home, binaries, tag, durable })
    return await run({ home, tag, lock, binaries, settings, timeoutMs, log, free }, password)
  } catch (error) {
    await free()
    throw error
  }
}

async function run(plan: Plan, password: string): Promise<EmbeddedPostgres> {
  const { keeper, port } = await launchOnFreePort(plan)
  const supervision = supervise(keeper, { restart: () => relaunch(plan, port), log: plan.log })
  let stopped: Promise<void> | undefined
  return {
    url: urlOf(port, password),
    dir: plan.home.path,
    stop: () => {
      stopped ??= supervision.stop().then(plan.free)
      return stopped
    },
  }
}

async function launchOnFreePort(plan: Plan): Promise<{ keeper: Keeper; port: number }> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort()
    const launched = await patiently(plan, launch(orderFor(plan, port), plan))
    if (launched.result === 'ready') return { keeper: await note(plan, launched.keeper, port), port }
    if (!portTaken.test(launched.words) || tries === portTries) throw failed(plan, launched)
  }
}

async function relaunch(plan: Plan, port: number): Promise<Keeper> {
  await clearLeftovers(plan.tag, plan.log)
  const launched = await launch(orderFor(plan, port), plan)
  if (launched.result !== 'ready') throw failed(plan, launched)
  const keeper = await note(plan, launched.keeper, port)
  plan.log(`The embedded Postgres was restarted (process ${keeper.serverPid}).`)
  return keeper
}

async function patiently<T>({ home, log }: Plan, work: Promise<T>): Promise<T> {
  const line = `Postgres is still starting; it may be recovering from a crash. Its log is ${logPath(home)}.`
  const timer = setTimeout(() => log(line), 5_000)
  return work.finally(() => clearTimeout(timer))
}

// for humans and for findEmbedded; no decision depends on the pids in it
async function note({ home, binaries }: Plan, keeper: Keeper, port: number): Promise<Keeper> {
  const facts = { port, postgres: keeper.serverPid, keeper: keeper.pid, owner: process.pid, version: binaries.version }
  try {
    await replaceFile(join(home.path, 'embedded.json'), `${JSON.stringify(facts, null, 2)}\n`, { mode: 0o600 })
    return keeper
  } catch (error) {
    await keeper.stop()
    throw error
  }
}

function failed(
  { home, timeoutMs }: Plan,
  { result, words }: { result: 'failed' | 'late'; words: string },
): HoldfastError {
  const what =
    result === 'late'
      ? `The embedded Postgres was not ready after ${timeoutMs / 1000} s.`
      : 'The embedded Postgres exited during startup.'
  return explainOutput(`${what} Its log is ${logPath(home)}.`, words, home.asked)
}

function orderFor({ home, tag, lock, binaries, settings }: Plan, port: number): Order {
  const cluster = clusterPath(home.path)
  return {
    tag,
    postgres: program(binaries, 'postgres'),
    args: [...tagArguments(tag), '-D', cluster, '-c', `port=${port}`, ...settings],
    cluster,
    log: logPath(home),
    lock: lock.path,
    account: home.account,
  }
}

function logPath(home: Home): string {
  return join(home.path, 'postgres.log')
}

function urlOf(port: number, password: string): string {
  return `postgres://${database}:${password}@127.0.0.1:${port}/${database}`
}
