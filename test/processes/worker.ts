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
}

/** A worker in a process of its own; see worker.mjs. */
export interface WorkerProcess {
  pid: number
  sessionId: number
  lines: Line[]
  /** Resolves once the process has told something of that sort. */
  told(what: (line: Line) => boolean): Promise<Line>
  /** Lets its patient handlers finish. */
  finish(): void
  kill(signal: NodeJS.Signals): void
  exited: Promise<{ code: number | null }>
}

/** Starts a worker process, which ends with the test. */
export async function startWorker(options: ConnectOptions): Promise<WorkerProcess> {
  const script = fileURLToPath(new URL('worker.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit').then(([code]) => ({ code }))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const lines: Line[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  const told = (what: (line: Line) => boolean) => until(() => lines.find(what), 'the worker process tells it')
  const { session } = await told((line) => line.session !== undefined)
  return {
    pid: child.pid as number,
    sessionId: session as number,
    lines,
    told,
    finish: () => child.stdin.write('\n'),
    kill: (signal) => child.kill(signal),
    exited,
  }
}
