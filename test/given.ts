import { defineJob } from 'holdfast'
import { readConfig } from '#holdfast/config/config'
import type { HeldFence, JobId } from '#holdfast/job/id'
import type { FinalState } from '#holdfast/job/machine'
import type { Store } from '#holdfast/postgres/store'
import { advanceJobs, failJobs, failOptional, finishJobs } from '#holdfast/settle/settle.sql'
import { prepare, type SubmitOptions } from '#holdfast/submit/prepare'
import { cancelJobs, submitJobs } from '#holdfast/submit/submit.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import { claimJobs, claimSuspects } from '#holdfast/worker/claim.sql'
import { type ClaimedRow, rowsOf } from '#holdfast/worker/claim-batch'
import { openSession } from '#holdfast/worker/session.sql'
import { queueAgain } from './places.ts'

/** A running attempt: its fence, and its queue. */
export interface Running extends HeldFence {
  readonly queue: string
}

/** Options of a situation. Without a queue it gets its own, so that no other claim takes its job. */
export interface How extends SubmitOptions {
  kind?: string
  queue?: string
  input?: unknown
  crashBudget?: number
}

/** Situations to start a test from, created with the product's own statements. */
export interface Given {
  /** A live session without a process behind it. */
  session(lease?: { leaseMs?: number; lostAfterMs?: number }): Promise<number>
  queued(how?: How): Promise<{ id: JobId; queue: string }>
  /** A job claimed by a live session. */
  running(how?: How & { sessionId?: number }): Promise<Running>
  /** A job at its second stage, with the first one's output committed. */
  atSecondStage(how?: How): Promise<{ id: JobId; queue: string }>
  /** Sets the last heartbeat of a session back by an hour. */
  silence(sessionId: number): Promise<void>
  /** Many jobs, all claimed by one session that has been silent for an hour. */
  crowdOfDeadSession(kind: string, count: number): Promise<{ sessionId: number; queue: string }>
  /** A job claimed by a session that has been silent for an hour. */
  attemptOfDeadSession(how?: How): Promise<Running>
  /** An attempt whose job was given to another session, which its own session does not know yet. */
  attemptThatWasLost(how?: How): Promise<Running>
  finished(state?: FinalState, how?: How): Promise<{ id: JobId; queue: string; attempt: number }>
  /** Claims in a lane, as a worker does. */
  claim(how: {
    sessionId: number
    queue: string
    kind?: string
    most?: number
    mostBytes?: number
    stageCount?: number
    isSuspect?: boolean
  }): Promise<ClaimedRow[]>
}

type Query = (text: string, values?: unknown[]) => Promise<unknown[]>

const config = readConfig({}, {})
const anError = JSON.stringify({ code: 'handler_failed', message: 'It broke.' })
let lanes = 0

/** The situations of one test. */
export function makeGiven(store: Store, query: Query): Given {
  const given: Given = {
    async session({ leaseMs = 60_000, lostAfterMs = 30_000 } = {}) {
      const facts = {
        pid: process.pid,
        host: 'test',
        supervisor: null,
        version: '0',
        kinds: [],
        queues: [],
        concurrency: 1,
      }
      const [opened] = await store.run(openSession, { ...facts, leaseMs, lostAfterMs })
      return (opened as { id: number }).id
    },

    async queued({ kind = 'sample', queue = `lane-${++lanes}`, input = null, crashBudget = 3, ...options } = {}) {
      const job = defineJob(kind, { queue, crashBudget, run: () => {} })
      const prepared = await prepare(config, job, input, options)
      await store.run(submitJobs, { jobs: [prepared] })
      return { id: prepared.id, queue }
    },

    async running({ sessionId, ...how } = {}) {
      const { id, queue } = await given.queued(how)
      const session = sessionId ?? (await given.session())
      const [row] = await given.claim({ sessionId: session, queue, kind: how.kind ?? 'sample' })
      if (row?.id !== id) throw new Error('Another job was claimed than the one that was made.')
      return { ...heldFenceOf(row), queue }
    },

    async atSecondStage(how = {}) {
      const running = await given.running(how)
      const { id, queue } = running
      await store.run(advanceJobs, { fences: [running], outputs: ['"first"'], stageNames: ['one'] })
      return { id, queue }
    },

    async silence(sessionId) {
      await query(
        `update holdfast.session
        set started_at = started_at - interval '2 h', heartbeat_at = long.ago, lease_until = long.ago + interval '1 ms'
        -- not before the server was started: the session would get time to come back
        from (select greatest(now() - interval '1 h', pg_postmaster_start_time() + interval '1 ms') as ago) as long
        where id = $1`,
        [sessionId],
      )
    },

    async crowdOfDeadSession(kind, count) {
      const queue = `lane-${++lanes}`
      const job = defineJob(kind, { queue, run: () => {} })
      const jobs = await Promise.all(Array.from({ length: count }, () => prepare(config, job, null, {})))
      await store.run(submitJobs, { jobs })
      const sessionId = await given.session()
      // in batches, as a worker does
      for (let left = count; left > 0; left -= 1_000) {
        const claimed = await given.claim({ sessionId, queue, kind, most: Math.min(left, 1_000) })
        if (claimed.length !== Math.min(left, 1_000)) throw new Error('Not all jobs were claimed.')
      }
      await given.silence(sessionId)
      return { sessionId, queue }
    },

    async attemptOfDeadSession(how = {}) {
      const running = await given.running(how)
      await given.silence(running.sessionId)
      return running
    },

    async attemptThatWasLost(how = {}) {
      const running = await given.running(how)
      await query(`update holdfast.session set ended_at = now(), ended_by = 'test' where id = $1`, [running.sessionId])
      await queueAgain(query, [running.id], { crashes: 1 })
      return running
    },

    async finished(state = 'succeeded', how = {}) {
      const running = await given.running(how)
      await endAs(store, state, running)
      return { id: running.id, queue: running.queue, attempt: running.attempt }
    },

    claim: async ({
      sessionId,
      queue,
      kind = 'sample',
      most = 1,
      mostBytes = 1e9,
      stageCount = 9,
      isSuspect = false,
    }) =>
      rowsOf(
        await store.run(isSuspect ? claimSuspects : claimJobs, {
          sessionId,
          lanes: [1, 2, 3, 4].map((priority) => ({ queue, kind, priority, stageCount })),
          most,
          mostBytes,
          deadlinesMs: JSON.stringify({ [kind]: Array(stageCount).fill(60_000) }),
        }),
        sessionId,
      ),
  }
  return given
}

async function endAs(store: Store, state: FinalState, running: Running): Promise<void> {
  const fences = [running]
  if (state === 'succeeded') await store.run(finishJobs, { fences, outputs: ['"done"'], stageNames: ['one'] })
  if (state === 'failed') await store.run(failJobs, { fences, errors: [anError] })
  if (state === 'partial') await store.run(failOptional, { fences, errors: [anError] })
  if (state === 'cancelled') await store.run(cancelJobs, { ids: [running.id], tenant: null, reason: null })
}
