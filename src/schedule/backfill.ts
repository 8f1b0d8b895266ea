import { HoldfastError } from '../errors/errors.ts'
import { mustBeObject, timeOf, wholeOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import { timingOf } from './plan.ts'
import { backfillSchedule } from './runs.sql.ts'
import type { ScheduleRow } from './schedule.sql.ts'
import { slotsOf, walk } from './slots.ts'

/** Which past slots to submit. */
export interface BackfillRange {
  /** The first moment, included. */
  from: Date
  /** The last moment, excluded. Default: now. */
  to?: Date
  /** How many slots the range may have, at most 10,000. Default: 100. */
  cap?: number
}

/** What a backfill did. */
export interface Backfilled {
  /** How many jobs it submitted. */
  submitted: number
  /** How many slots it left out, because their job exists. */
  existing: number
}

const mostSlots = 10_000
/** All jobs are inserted by one statement. */
const mostBytes = 64 * 1024 * 1024

/** Submits past slots of a schedule, all or none. They run whatever the overlap mode, since they were asked for. */
export async function backfill(
  store: Store,
  row: ScheduleRow,
  range: BackfillRange,
  by: string | null,
): Promise<Backfilled> {
  mustBeObject('range', range)
  const cap = wholeOf('cap', range.cap ?? 100, mostSlots)
  // no schedule has slots before 1970
  const fromMs = Math.max(0, timeOf('from', range.from).getTime())
  const toMs = Math.min(
    range.to === undefined ? Number.POSITIVE_INFINITY : timeOf('to', range.to).getTime(),
    row.now.getTime(),
  )
  if (fromMs >= toMs)
    throw new HoldfastError('option_invalid', 'The range of a backfill must begin before it ends, and in the past.')
  const slots = await slotsIn(row, { fromMs, toMs, cap })
  if (slots.length === 0)
    throw new HoldfastError(
      'option_invalid',
      `The schedule ${row.name} has no slot from ${new Date(fromMs).toISOString()} to ${new Date(toMs).toISOString()}.`,
    )
  mustFit(row, slots.length)
  const submitted = await store.contend(backfillSchedule, { tenant: row.tenant, name: row.name, slots, by })
  return { submitted: submitted.length, existing: slots.length - submitted.length }
}

async function slotsIn(
  row: ScheduleRow,
  { fromMs, toMs, cap }: { fromMs: number; toMs: number; cap: number },
): Promise<Date[]> {
  const found = await walk(slotsOf(timingOf(row)), { fromMs, toMs: toMs - 1, most: cap + 1 })
  if (found.length <= cap) return found
  throw new HoldfastError(
    'option_invalid',
    `The range has more than ${cap} slots; choose a shorter one, or raise cap (at most ${mostSlots}).`,
  )
}

function mustFit({ input }: ScheduleRow, slots: number): void {
  const bytes = Buffer.byteLength(JSON.stringify(input))
  if (slots === 1 || slots * bytes <= mostBytes) return
  throw new HoldfastError(
    'option_invalid',
    `The range has ${slots} slots with an input of ${bytes} bytes each, and a backfill stores at most ${mostBytes} bytes; choose a shorter range.`,
  )
}
