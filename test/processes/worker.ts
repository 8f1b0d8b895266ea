import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ConnectOptions } from 'holdfast'
import { onTestFinished } from 'vitest'
import { until } from '../until.ts'

type Line = {
  session?: number
  started?: string
  attempt?: number
  aborted?: string
  reason?: string
  stopping?: boolean
  /** The code of the error that the worker ended with. */
  failed?: string
  message?: string
}

/** A worker in a process of its own; see worker.mjs. */
export interface WorkerProcess {
  pid: number
  sessionId: number
  lines: Line[]
  /** What it has logged. */
  log(): string
  /** Resolves once the process has told something of that sort. */
  told(what: (line: Line) => boolean): Promise<Line>
  /** Lets its patient handlers finish. */
  finish(): void
  kill(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null }>
}

/** Starts a worker process, which ends with the test. */
export async function startWorker(options: ConnectOptions, env: Record<string, string> = {}): Promise<WorkerProcess> {
  const script = fileURLToPath(new URL('worker.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  const exited = once(child, 'exit').then(([code]) => ({ code }))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (piece) => (log += piece))
  const lines: Line[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  const told = (what: (line: Line) => boolean) => until(() => lines.find(what), 'the worker process tells it', 60_000)
  const { session } = await told((line) => line.session !== undefined)
  return {
    pid: child.pid as number,
    sessionId: session as number,
    lines,
    log: () => log,
    told,
    finish: () => child.stdin.write('\n'),
    kill: (signal) => child.kill(signal),
    exited,
  }
}
