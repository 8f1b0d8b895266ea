import { type Slots, slotsOf } from './slots.ts'
import type { DueRow, Step } from './tick.sql.ts'

/** How many skipped slots are counted. */
export const mostCounted = 1_000

/**
 * Up to which slot the missed slots of a schedule run, by its name and revision. They are chosen once, and not again at each of them: that
 * would take time squared.
 */
export type Chosen = Map<string, number>
const mostChosen = 5_000

/** What to do with the next slot of a schedule that is due. Throws if its slots can't be computed. */
export function planStep(row: DueRow, missedAfterMs: number, chosen: Chosen = new Map()): Step {
  const slots = slotsOf(timingOf(row))
  const [firstMs, nowMs] = [row.next_at.getTime(), row.now.getTime()]
  // up to here, slots were missed
  const missedMs = nowMs - missedAfterMs
  if (firstMs > missedMs) return runSlot(row, slots, firstMs)
  if (row.missed === 'skip') return skipTo(row, slots, slots.next(missedMs))
  if (row.missed === 'latest') return runSlot(row, slots, slots.latest(firstMs, nowMs, 1)[0] ?? firstMs)
  const startMs = firstOfAll(row, slots, chosen)
  return startMs === firstMs ? runSlot(row, slots, firstMs) : skipTo(row, slots, startMs)
}

/** The timing of a stored schedule. */
export function timingOf(row: Pick<DueRow, 'cron' | 'every_ms' | 'tz' | 'starts_at' | 'ends_at'>) {
  return { cron: row.cron, everyMs: row.every_ms, tz: row.tz, startsAt: row.starts_at, endsAt: row.ends_at }
}

/** The first slot to run of all that were missed: within the window, and not more than the cap. */
function firstOfAll(row: DueRow, slots: Slots, chosen: Chosen): number | null {
  const [firstMs, nowMs] = [row.next_at.getTime(), row.now.getTime()]
  const key = `${row.tenant}/${row.name}/${row.revision}`
  if (firstMs <= (chosen.get(key) ?? Number.NEGATIVE_INFINITY)) return firstMs
  const found = slots.latest(Math.max(firstMs, nowMs - row.missed_window_ms), nowMs, row.missed_cap)
  if (chosen.size >= mostChosen) chosen.clear()
  chosen.set(key, found.at(-1) ?? Number.NEGATIVE_INFINITY)
  return found[0] ?? slots.next(nowMs)
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
