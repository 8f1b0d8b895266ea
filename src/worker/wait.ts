import { HoldfastError } from '../errors/errors.ts'
import type { HeldFence } from '../job/id.ts'
import type { Wait } from '../job/wait.ts'
import { isNobodysFault } from '../postgres/connection.ts'
import type { Runner } from '../postgres/store.ts'
import type { JobError, Outcome } from '../settle/outcome.ts'
import { awaitSignal } from './wait.sql.ts'

/** A stage that waits. */
export interface Waiting {
  fence: HeldFence
  stage: number
  stageName: string
  wait: Wait
}

/** What follows from an attempt at a stage that waits: its signal has come, its time is over, or it goes on waiting. */
export type Waited = { output: string | null } | { error: JobError } | { outcome: Outcome }

/** Looks for the signal of a stage that waits. If the database is unreachable, the attempt is released, and another one looks. */
export async function waitForSignal(store: Runner, { fence, stage, stageName, wait }: Waiting): Promise<Waited> {
  try {
    const [row] = await store.run(awaitSignal, { fence, stage, signal: wait.signal, timeoutMs: wait.timeoutMs })
    // without a row the attempt is no longer ours, and the release will be refused
    if (!row) return { outcome: { move: 'release' } }
    if (row.is_sent) return { output: row.payload }
    if (row.is_over) return { error: timeoutOf(stageName, wait) }
    return { outcome: { move: 'snooze', delayMs: wait.timeoutMs, signal: wait.signal } }
  } catch (error) {
    if (error instanceof HoldfastError && isNobodysFault(error)) return { outcome: { move: 'release' } }
    throw error
  }
}

function timeoutOf(stageName: string, { signal, timeoutMs }: Wait): JobError {
  return {
    code: 'signal_timeout',
    message: `Stage ${stageName} waited ${timeoutMs} ms for the signal ${JSON.stringify(signal)}, and it did not come.`,
  }
}
