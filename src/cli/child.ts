import { type ChildProcess, fork } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type ErrorCode, errorCodes, HoldfastError, messageOf } from '../errors/errors.ts'
import type { Pulse } from '../service/vitals.ts'

/** What a worker process tells its supervisor. */
export type ChildMessage =
  | { type: 'ready'; session: number }
  | { type: 'failed'; code: string; message: string }
  | ({ type: 'alive' } & ChildLife)

/** The health of a worker process, as it reports every second. */
export interface ChildLife {
  pulses: Pulse[]
  /** Whether it holds its session. */
  isHeld: boolean
  /** How long its running handlers may still take. Its event loop may be blocked that long for a good reason. */
  allowedMs: number
}

/** How to start a worker process. */
export interface ChildOptions {
  /** The hidden command and its arguments. */
  args: readonly string[]
  env: NodeJS.ProcessEnv
  /** Called with each line that the process writes. Without it, the process writes to our own output. */
  onLine?: ((pid: number, line: string) => void) | undefined
}

/** A worker process. */
export interface Child {
  readonly pid: number
  /** Resolves once it works. Rejects with the error that it reports, or if it exits first. */
  readonly ready: Promise<void>
  /** Resolves when it has exited, with a description of how. */
  readonly ended: Promise<string>
  /** Its last report, and how long ago that was; before its first report, how long ago it was started. And for how long it has been starting, or did. */
  life(): ChildLife & { silentMs: number; isReady: boolean; startMs: number }
  kill(signal: NodeJS.Signals): void
}

/** The exit code of a worker process that drained because too many of its handlers ignore their signal. */
export const wornOutCode = 75

/** What is known of a process before its first report. */
const unheard: ChildLife = { pulses: [], isHeld: false, allowedMs: 0 }

const program = fileURLToPath(new URL('./main.js', import.meta.url))

/** Starts a worker process. One that the system can't start has ended. */
export function startChild(options: ChildOptions): Child {
  try {
    return forkChild(options)
  } catch (error) {
    // for lack of memory and some other reasons, `fork` throws; for the rest, the process reports it
    return unborn(`failed to start: ${messageOf(error)}`)
  }
}

function forkChild({ args, env, onLine }: ChildOptions): Child {
  const out = onLine ? 'pipe' : 'inherit'
  const child = fork(program, [...args], { env, stdio: ['ignore', out, out, 'ipc'] })
  const pid = child.pid ?? 0
  for (const stream of [child.stdout, child.stderr])
    if (stream) createInterface({ input: stream }).on('line', (line) => onLine?.(pid, line))
  const ended = endOf(child)
  const ready = readinessOf(child, ended)
  const startedAtMs = performance.now()
  let heardAtMs = startedAtMs
  let readyAtMs: number | undefined
  let said: ChildLife = unheard
  child.on('message', (message: ChildMessage) => {
    heardAtMs = performance.now()
    if (message.type === 'alive') said = message
    if (message.type === 'ready') readyAtMs = heardAtMs
  })
  ready.catch(() => {}) // nobody may be waiting for it
  const life = () => ({
    ...said,
    silentMs: Math.round(performance.now() - heardAtMs),
    isReady: readyAtMs !== undefined,
    startMs: Math.round((readyAtMs ?? performance.now()) - startedAtMs),
  })
  return { pid, ready, ended, life, kill: (signal) => void child.kill(signal) }
}

function unborn(how: string): Child {
  const ended = Promise.resolve(how)
  const ready = Promise.reject(endedEarly(how))
  ready.catch(() => {}) // nobody may be waiting for it
  const life = () => ({ ...unheard, silentMs: 0, isReady: false, startMs: 0 })
  return { pid: 0, ready, ended, life, kill: () => {} }
}

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(`failed to start: ${error.message}`))
    child.once('exit', (code, signal) => resolve(signal ? `was killed by ${signal}` : formatCode(code)))
  })
}

function formatCode(code: number | null): string {
  if (code === wornOutCode)
    return `asked to be replaced (code ${code}): too many of its handlers ignore their abort signal`
  return `ended with code ${code}`
}

function readinessOf(child: ChildProcess, ended: Promise<string>): Promise<void> {
  return new Promise((resolve, reject) => {
    child.on('message', (received) => {
      const message = received as ChildMessage
      if (message.type === 'ready') resolve()
      if (message.type === 'failed') reject(failureOf(message))
    })
    void ended.then((how) => reject(endedEarly(how)))
  })
}

function endedEarly(how: string): HoldfastError {
  return new HoldfastError('not_running', `A worker process ${how} before it was ready.`)
}

function failureOf({ code, message }: { code: string; message: string }): Error {
  return Object.hasOwn(errorCodes, code) ? new HoldfastError(code as ErrorCode, message) : new Error(message)
}
