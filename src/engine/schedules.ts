import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { kindOf, nearKindsOf, submittable, unknownKind } from '../reads/kinds.ts'
import { declareSchedules } from '../schedule/declare.ts'
import { overdueSchedules } from '../schedule/schedule.sql.ts'
import { makeSchedules, type Schedules } from '../schedule/schedules.ts'
import type { Round } from '../schedule/tick.ts'
import { Ticker } from '../schedule/ticker.ts'
import { makeCanceller } from '../submit/cancel.ts'
import { cancelJob } from './cancel.ts'
import { logError } from './log-error.ts'
import type { EngineParts } from './parts.ts'

/** Makes the schedules of an engine. */
export function makeEngineSchedules({ store, config, flow, jobs }: EngineParts): Schedules {
  return makeSchedules({ store, config, flow, findKind })

  /** A kind of this process, with its schema; or else as workers registered it. */
  async function findKind(name: string, tenant: string): Promise<AnyJob> {
    const own = jobs.find(({ kind }) => kind === name)
    if (own) return own
    const registered = await kindOf(store, name, tenant)
    if (registered) return submittable(registered)
    throw unknownKind(name, await nearKindsOf(store, name, tenant), 'Workers have registered')
  }
}

/** Makes the ticker of an engine. Only a process that works declares the schedules of its kinds. */
export function makeEngineTicker(parts: EngineParts, isLeader: () => boolean, declares: boolean): Ticker {
  const { store, config, jobs, listeners, log } = parts
  const canceller = makeCanceller(store, config.statementTimeoutMs)
  return new Ticker({
    store,
    missedAfterMs: config.scheduleMissedAfterMs,
    isLeader,
    ...(declares && { declare: (signal) => declareSchedules(parts, jobs, signal) }),
    async cancel({ jobId, tenant, schedule }) {
      const reason = `A later slot of the schedule ${schedule} replaced it.`
      const act = { reason, tenant, by: `schedule ${schedule}` }
      await cancelJob({ store, canceller, listeners, onEnded: () => {} }, jobId, act).catch((error) => {
        if (!isOver(error)) throw error
      })
    },
    observer: {
      ticked: (round) => tellRound(parts, round),
      onError: (error) => logError(log, 'schedules', error),
    },
  })
}

const overCodes = ['move_illegal', 'job_not_found', 'job_gone']

function isOver(error: unknown): boolean {
  return error instanceof HoldfastError && overCodes.includes(error.code)
}

/** How many schedules of one round are logged; after an outage, thousands may be late. */
const mostTold = 5

function tellRound({ log, metrics }: EngineParts, { ticked, failed }: Round): void {
  if (failed.length > 0) metrics.add('holdfast_schedule_slots_total', { what: 'failed' }, failed.length)
  for (const { what, missed, late_ms } of ticked) {
    if (what) metrics.add('holdfast_schedule_slots_total', { what })
    if (what === 'submitted' && late_ms !== null)
      metrics.observe('holdfast_schedule_lateness_seconds', {}, Math.max(0, late_ms) / 1000)
    if (missed > 0) metrics.add('holdfast_schedule_slots_total', { what: 'missed' }, missed)
  }
  const late = ticked.filter(({ missed }) => missed > 0)
  for (const { tenant, name, missed } of late.slice(0, mostTold))
    log.warn(
      { schedule: name, tenant, missed },
      'a schedule missed slots: nothing was running, or the process was cut off',
    )
  if (late.length > mostTold) log.warn({ leftOut: late.length - mostTold }, 'more schedules missed slots')
  for (const { tenant, name, problem } of failed.slice(0, mostTold))
    log.error({ schedule: name, tenant, reason: problem }, 'could not decide a slot of a schedule; trying again')
  if (failed.length > mostTold)
    log.error({ leftOut: failed.length - mostTold }, 'could not decide slots of more schedules')
}

/** How many schedules are due, and for how long. */
export async function overdueOf({ store }: Pick<EngineParts, 'store'>): Promise<{ count: number; overdueMs: number }> {
  const [row] = await store.run(overdueSchedules, {})
  return { count: row?.count ?? 0, overdueMs: row?.overdue_ms ?? 0 }
}
