import { type Slots, slotsOf } from './slots.ts'
import type { DueRow, Step } from './tick.sql.ts'

/** How many skipped slots are counted. */
export const mostCounted = 1_000

/** What to do with the next slot of a schedule that is due. Throws if its slots can't be computed. */
export function planStep(row: DueRow, missedAfterMs: number): Step {
  const slots = slotsOf(timingOf(row))
  const [firstMs, nowMs] = [row.next_at.getTime(), row.now.getTime()]
  // up to here, slots were missed
  const missedMs = nowMs - missedAfterMs
  if (firstMs > missedMs) return runSlot(row, slots, firstMs)
  if (row.missed === 'skip') return skipTo(row, slots, slots.next(missedMs))
  if (row.missed === 'latest') return runSlot(row, slots, slots.between(firstMs, nowMs, mostCounted).lastMs ?? firstMs)
  const startMs = firstOfAll(row, slots, nowMs)
  return startMs === firstMs ? runSlot(row, slots, firstMs) : skipTo(row, slots, startMs)
}

/** The timing of a stored schedule. */
export function timingOf(row: Pick<DueRow, 'cron' | 'every_ms' | 'tz' | 'starts_at' | 'ends_at'>) {
  return { cron: row.cron, everyMs: row.every_ms, tz: row.tz, startsAt: row.starts_at, endsAt: row.ends_at }
}

/** The first slot to run of all that were missed: within the window, and not more than the cap. */
function firstOfAll({ next_at, missed_window_ms, missed_cap }: DueRow, slots: Slots, nowMs: number): number | null {
  const fromMs = Math.max(next_at.getTime(), nowMs - missed_window_ms)
  return slots.latest(fromMs, nowMs, missed_cap)[0] ?? slots.next(nowMs)
}

function runSlot(row: DueRow, slots: Slots, slotMs: number): Step {
  const nextMs = slots.next(slotMs)
  return { ...stepOf(row, nextMs), slotAt: new Date(slotMs), skipped: skippedBefore(row, slots, slotMs) }
}

function skipTo(row: DueRow, slots: Slots, nextMs: number | null): Step {
  const untilMs = nextMs ?? row.now.getTime() + 1
  return { ...stepOf(row, nextMs), slotAt: null, skipped: skippedBefore(row, slots, untilMs) }
}

function stepOf({ tenant, name, revision, next_at, last_job_id }: DueRow, nextMs: number | null) {
  const nextAt = nextMs === null ? null : new Date(nextMs)
  return { tenant, name, revision, expectedAt: next_at, lastJobId: last_job_id, nextAt }
}

function skippedBefore({ next_at, missed }: DueRow, slots: Slots, untilMs: number): Step['skipped'] {
  if (untilMs <= next_at.getTime()) return null
  const { count, lastMs } = slots.between(next_at.getTime(), untilMs - 1, mostCounted)
  if (lastMs === null) return null
  const reason =
    missed === 'all'
      ? 'missed: nothing was running, and the window or the cap was exceeded'
      : 'missed: nothing was running'
  return { from: next_at, to: new Date(lastMs), count, reason }
}
