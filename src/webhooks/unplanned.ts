/**
 * Events whose webhooks can't be planned: the event can't be read, or the database rejects its deliveries. The planner parks each and goes on.
 * It plans them again later without being asked, because all events may be affected: by a trigger that someone removes, for example. After many
 * failures an event stays parked until someone replays it. Nothing is skipped.
 */
import { messageOf } from '../errors/errors.ts'
import type { HeldCursor } from '../events/cursor.ts'
import { moveCursor, parkEvent } from '../events/group.sql.ts'
import { dueParked, keepParked, type ParkedRow } from '../events/parked.sql.ts'
import { stubOf } from '../events/unread.ts'
import { isHeldUp } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { isNobodys } from '../transitions/batch.ts'
import { planParked } from './plan.sql.ts'

/** What it takes to plan parked events. */
export interface ReplannerParts {
  store: Store
  maxBytes: number
  publicUrl: string | null
  onPlanned: (count: number) => void
  onError: (error: unknown) => void
}

const lookEveryMs = 1_000
/** How many are planned before new events are. */
const mostAtOnce = 10
const delays = { leastMs: 60_000, mostMs: 3_600_000 }
/** More than a day with these delays. */
const mostFailures = 30

/** Parks the next event, whose webhooks can't be planned. */
export async function parkUnplanned(
  { store, onError }: ReplannerParts,
  cursor: HeldCursor,
  seq: number,
  error: unknown,
): Promise<0 | 'lost'> {
  const row = await stubOf(store, about(cursor), seq)
  const { fence, wantsWake } = cursor
  const reason = messageOf(error)
  const parked = { event: JSON.stringify(row), failures: 1, error: reason, replayMs: delays.leastMs }
  const [moved] = row
    ? await store.contend(parkEvent, { ...fence, ...parked, from: cursor.seq, seq })
    : await store.contend(moveCursor, { ...fence, from: cursor.seq, seq, wantsWake })
  if (!moved) return 'lost'
  cursor.moved(seq)
  if (row) onError(new Error(`The webhooks of event ${seq} can't be planned, so it was parked: ${reason}`))
  return 0
}

/** Makes a function that plans the parked events that are due, now and then. New events are planned whatever happens to them. */
export function makeReplanner(parts: ReplannerParts): (cursor: HeldCursor) => Promise<void> {
  let lookedMs = Number.NEGATIVE_INFINITY
  return async (cursor) => {
    if (performance.now() - lookedMs < lookEveryMs) return
    lookedMs = performance.now()
    try {
      const due = await parts.store.run(dueParked, { ...about(cursor), limit: mostAtOnce, isBare: true })
      for (const row of due) if (!cursor.leaving.aborted) await replan(parts, cursor, row)
      // there may be more
      if (due.length === mostAtOnce) lookedMs = Number.NEGATIVE_INFINITY
    } catch (error) {
      parts.onError(error)
    }
  }
}

async function replan(parts: ReplannerParts, cursor: HeldCursor, { seq, failures }: ParkedRow): Promise<void> {
  const { store, maxBytes, publicUrl, onPlanned, onError } = parts
  const params = { ...cursor.fence, from: seq - 1, seq, maxBytes, publicUrl }
  try {
    const [planned] = await store.contend(planParked, params).catch((error) => {
      // a locked row says nothing about the event
      if (isNobodys(error) || isHeldUp(error)) throw error
      return store.contend(planParked, { ...params, isBare: true })
    })
    if (planned && planned.planned > 0) onPlanned(planned.planned)
    if (planned) return
    const [kept] = await store.contend(keepParked, { ...cursor.fence, seq, failures: 1, error: gone })
    if (kept) onError(new Error(`The webhooks of event ${seq} can't be planned: ${gone}`))
  } catch (error) {
    if (isNobodys(error)) throw error
    const isLast = failures + 1 >= mostFailures
    const replayMs = isLast ? null : Math.min(delays.mostMs, delays.leastMs * 2 ** failures)
    await store.contend(keepParked, { ...cursor.fence, seq, failures: 1, error: messageOf(error), replayMs })
  }
}

const gone = 'The event is no longer in the log.'

function about({ fence: { group, partition }, partitions }: HeldCursor) {
  return { group, partition, partitions }
}
