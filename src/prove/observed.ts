import type { StageContext } from '../job/define.ts'
import { monotonicMs } from '../service/clock.ts'

/** What a handler did, reported to the prover at once. */
export interface Effect {
  what: 'started' | 'ended'
  jobId: string
  stage: string
  attempt: number
  /** Identifies this run of the handler. Its output carries the same token. */
  token: string
  /** On the monotonic clock, which all processes of a machine share. */
  atMs: number
  /** Why its signal was aborted, if it ended because of that. */
  reason?: string
}

/** Where effects go. */
export type Report = (effect: Effect) => void

/** What every stage of the prover returns. */
export interface Output {
  token: string
  attempt: number
}

/** What the prover's handlers use of their context. */
export type Context = Pick<StageContext, 'job' | 'stage' | 'attempt' | 'signal' | 'progress' | 'log' | 'snooze'>

let runs = 0

/** Wraps a handler so that the prover learns when it starts and when it ends or is aborted. */
export function observed(report: Report, handler: (ctx: Context) => Promise<unknown> | unknown) {
  return async (ctx: Context): Promise<Output> => {
    runs += 1
    const token = `${process.pid}-${runs}`
    const facts = { jobId: ctx.job.id, stage: ctx.stage, attempt: ctx.attempt, token }
    let isOver = false
    const end = (reason?: string) => {
      if (!isOver) report({ what: 'ended', ...facts, atMs: monotonicMs(), ...(reason && { reason }) })
      isOver = true
    }
    report({ what: 'started', ...facts, atMs: monotonicMs() })
    // the product promises to abort in time; what a handler does after that is its own fault
    ctx.signal.addEventListener('abort', () => end(String((ctx.signal.reason as { reason?: string })?.reason)))
    try {
      await handler(ctx)
      return { token, attempt: ctx.attempt }
    } finally {
      end()
    }
  }
}
