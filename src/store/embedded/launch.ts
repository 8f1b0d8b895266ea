import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, open, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { pause } from '../../service/service.ts'
import type { Account } from './account.ts'
import { environment } from './cluster.ts'
import { fastMs, immediateMs } from './leftovers.ts'

const shutdownMs = fastMs + 2 * immediateMs

/** All that a keeper has to know. */
export interface Order {
  tag: string
  postgres: string
  args: string[]
  cluster: string
  log: string
  lock: string
  account: Account | undefined
}

/** A keeper whose server takes connections. */
export interface Keeper {
  pid: number
  serverPid: number
  exited: Promise<unknown>
  stop(): Promise<void>
}

/** How a launch ended. A failure comes with what the server wrote to its log meanwhile. */
export type Launch = { result: 'ready'; keeper: Keeper } | { result: 'failed' | 'late'; words: string }

/** Starts a keeper with a server, and waits until it is ready, has ended, or has taken too long. */
export async function launch(order: Order, options: { timeoutMs: number }): Promise<Launch> {
  const log = await openLog(order.log)
  try {
    const { size } = await log.stat()
    const child = spawnKeeper(order, log.fd)
    const exited = once(child, 'exit')
    const answer = await within(options.timeoutMs, Promise.race([firstWords(child), exited.then(() => 'exit')]))
    if (answer?.startsWith('ready ')) return { result: 'ready', keeper: keeperOf(child, exited, answer) }
    child.stdin?.destroy()
    await within(shutdownMs, exited)
    return { result: answer ? 'failed' : 'late', words: await readFrom(log, size) }
  } finally {
    await log.close()
  }
}

function spawnKeeper(order: Order, log: number): ChildProcess {
  const program = fileURLToPath(new URL('./keeper.js', import.meta.url))
  const child = spawn(process.execPath, [program, order.tag, JSON.stringify(order)], {
    detached: true, // a session of its own: Ctrl-C reaches every process of a terminal, and this one must outlast it
    cwd: '/',
    env: environment,
    stdio: ['pipe', 'pipe', log],
  })
  child.stdin?.on('error', () => {}) // it has ended, which its exit tells
  return child
}

function keeperOf(child: ChildProcess, exited: Promise<unknown>, answer: string): Keeper {
  const lifeline = child.stdin as Socket
  child.stdout?.destroy()
  // A program that has nothing more to do may end without stop(); the lifeline then closes by itself.
  child.unref()
  lifeline.unref()
  return {
    pid: child.pid ?? 0,
    serverPid: Number(answer.split(' ')[1]),
    exited,
    stop: async () => {
      child.ref()
      lifeline.destroy()
      await within(shutdownMs, exited)
    },
  }
}

async function firstWords(child: ChildProcess): Promise<string> {
  const [words] = (await once(child.stdout as Socket, 'data')) as [Buffer]
  return String(words).trim()
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const over = new AbortController()
  const late = pause(ms, over.signal).then(() => undefined)
  return Promise.race([promise, late]).finally(() => over.abort())
}

async function openLog(path: string): Promise<FileHandle> {
  return open(path, 'a+', 0o600).catch(async () => {
    await rm(path, { force: true }) // written by root, before the folder was used without it
    return open(path, 'a+', 0o600)
  })
}

async function readFrom(log: FileHandle, position: number): Promise<string> {
  const { size } = await log.stat()
  const since = size < position ? 0 : position // the keeper has cut it meanwhile
  const length = Math.min(size - since, 64 * 1024)
  const { buffer } = await log.read({ buffer: Buffer.alloc(length), position: size - length })
  return String(buffer)
}
