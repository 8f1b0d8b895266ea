import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, open, rm } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { within } from '../service/service.ts'
import type { Account } from './account.ts'
import { environment } from './cluster.ts'
import { fastMs, immediateMs } from './leftovers.ts'

const shutdownMs = fastMs + 2 * immediateMs

/** What a keeper needs. */
export interface Order {
  tag: string
  postgres: string
  args: string[]
  cluster: string
  log: string
  lock: string
  account: Account | undefined
}

/** A keeper whose server accepts connections. */
export interface Keeper {
  pid: number
  serverPid: number
  exited: Promise<unknown>
  stop(): Promise<void>
}

/** How a launch ended. A failure includes what the server wrote to its log. */
export type Launch = { result: 'ready'; keeper: Keeper } | { result: 'failed' | 'late'; words: string }

/** Starts a keeper with a server, and waits until it is ready, has ended, or has taken too long. */
export async function launch(order: Order, options: { timeoutMs: number }): Promise<Launch> {
  const log = await openLog(order.log)
  try {
    const { size } = await log.stat()
    const child = spawnKeeper(order, log.fd)
    const exited = once(child, 'exit')
    const answered = Promise.race([firstOutput(child), exited.then(() => 'exit')])
    const answer = (await within(options.timeoutMs, answered)) ? await answered : undefined
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
    detached: true, // its own session: Ctrl-C reaches every process of a terminal, and the keeper must survive it
    cwd: '/',
    env: environment,
    stdio: ['pipe', 'pipe', log],
  })
  child.stdin?.on('error', () => {}) // it has exited, and its exit event reports that
  return child
}

function keeperOf(child: ChildProcess, exited: Promise<unknown>, answer: string): Keeper {
  const lifeline = child.stdin as Socket
  child.stdout?.destroy()
  // a program with nothing left to do may end without stop(); the lifeline then closes by itself
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

async function firstOutput(child: ChildProcess): Promise<string> {
  const [output] = (await once(child.stdout as Socket, 'data')) as [Buffer]
  return String(output).trim()
}

async function openLog(path: string): Promise<FileHandle> {
  return open(path, 'a+', 0o600).catch(async () => {
    await rm(path, { force: true }) // root wrote it, before the folder was used without root
    return open(path, 'a+', 0o600)
  })
}

async function readFrom(log: FileHandle, position: number): Promise<string> {
  const { size } = await log.stat()
  const since = size < position ? 0 : position // the keeper has truncated it
  const length = Math.min(size - since, 64 * 1024)
  const { buffer } = await log.read({ buffer: Buffer.alloc(length), position: size - length })
  return String(buffer)
}
