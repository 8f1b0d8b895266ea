import { type ChildProcess, fork } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import type { Pulse } from '../service/vitals.ts'

/** What a worker process tells its supervisor. */
export type ChildNews =
  | { news: 'ready'; session: number }
  | { news: 'failed'; code: string; message: string }
  | ({ news: 'alive' } & ChildLife)

/** How a worker process is, as it says every second. */
export interface ChildLife {
  pulses: Pulse[]
  /** Whether its session stands. */
  isHeld: boolean
  /** How long the handlers that run may still take: so long its event loop may be blocked for a good reason. */
  allowedMs: number
}

/** How to start a worker process. */
export interface ChildOptions {
  /** The hidden command and its arguments. */
  args: readonly string[]
  env: NodeJS.ProcessEnv
  /** Takes what the process writes, line by line; without it, the process writes where we do. */
  onLine?: ((pid: number, line: string) => void) | undefined
}

/** A worker process. */
export interface Child {
  readonly pid: number
  /** Resolves once it works; rejects with what it says it failed of, or if it ends before. */
  readonly ready: Promise<void>
  /** Resolves when it is gone, with a few words on how. */
  readonly ended: Promise<string>
  /** What it last said of itself, and how long ago. Before its first word, that it was started. */
  life(): ChildLife & { silentMs: number }
  kill(signal: NodeJS.Signals): void
}

/** The exit code of a worker process that drained because too many of its handlers ignore their signal. */
export const wornOutCode = 75

const program = fileURLToPath(new URL('./main.js', import.meta.url))

/** Starts a worker process. */
export function startChild({ args, env, onLine }: ChildOptions): Child {
  const out = onLine ? 'pipe' : 'inherit'
  const child = fork(program, [...args], { env, stdio: ['ignore', out, out, 'ipc'] })
  const pid = child.pid ?? 0
  for (const stream of [child.stdout, child.stderr])
    if (stream) createInterface({ input: stream }).on('line', (line) => onLine?.(pid, line))
  const ended = endOf(child)
  const ready = readinessOf(child, ended)
  let heardAtMs = performance.now()
  let said: ChildLife = { pulses: [], isHeld: false, allowedMs: 0 }
  child.on('message', (news: ChildNews) => {
    heardAtMs = performance.now()
    if (news.news === 'alive') said = news
  })
  ready.catch(() => {}) // whoever started it asks once; later nobody may
  const life = () => ({ ...said, silentMs: Math.round(performance.now() - heardAtMs) })
  return { pid, ready, ended, life, kill: (signal) => void child.kill(signal) }
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${error.message}`))
    child.once('exit', (code, signal) => resolve(signal ? `was ended by ${signal}` : codeWords(code)))
  })
}

function codeWords(code: number | null): string {
  if (code === wornOutCode) return `asked to be replaced (code ${code}): too many of its handlers ignore their signal`
  return `ended with code ${code}`
}

function readinessOf(child: ChildProcess, ended: Promise<string>): Promise<void> {
  return new Promise((resolve, reject) => {
    child.on('message', (message) => {
      const news = message as ChildNews
      if (news.news === 'ready') resolve()
      if (news.news === 'failed') reject(failureOf(news))
    })
    void ended.then((how) => reject(new HoldfastError('not_running', `A worker process ${how} before it could work.`)))
  })
}

function failureOf({ code, message }: { code: string; message: string }): Error {
  return Object.hasOwn(errorCodes, code) ? new HoldfastError(code as ErrorCode, message) : new Error(message)
}
