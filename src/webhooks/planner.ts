// Turns events into deliveries. The invariant: every event that a webhook wants has its deliveries, each once, no matter which process dies
// when.
//
// The planner is a group of readers with one cursor, so one process plans at a time. Its fence is in the same statement that inserts the
// deliveries and moves the cursor: either both happen or neither.
//
// An endpoint wants the events from its creation on. None of them is missed, even if the endpoint commits late, because of how the horizon
// works: an event is read only once all transactions have ended that had an id when its number was the last one. An endpoint that is still
// invisible then got its transaction id later, and read the end of the log even later, so its since_seq is after all events that are read.
//
// An event that can't be planned is parked, and planned later (see unplanned.ts).
import { messageOf } from '../errors/errors.ts'
import { type HeldCursor, nextLookMs } from '../events/cursor.ts'
import { findGroup, moveCursor, openGroup } from '../events/group.sql.ts'
import { webhookGroup } from '../events/group-name.ts'
import { takeMark } from '../events/horizon.sql.ts'
import { type Horizon, makeHorizon } from '../events/horizon.ts'
import { Reader } from '../events/reader.ts'
import type { Wakeups } from '../events/wakeups.ts'
import { isHeldUp } from '../postgres/connection.ts'
import type { Runner, Store } from '../postgres/store.ts'
import type { Service } from '../service/service.ts'
import { isNobodys } from '../transitions/batch.ts'
import { planDeliveries } from './plan.sql.ts'
import { makeReplanner, parkUnplanned } from './unplanned.ts'

/** What a planner needs. */
export interface PlannerParts {
  store: Store
  wakeups: Wakeups
  pollMs: number
  leaseMs: number
  beatMs: number
  maxBytes: number
  publicUrl: string | null
  /** Called when there is something to send. */
  onPlanned: (count: number) => void
  onError: (error: unknown) => void
}

/** Whether a webhook was ever wanted in this database. */
export async function isWanted(store: Runner): Promise<boolean> {
  return (await store.run(findGroup, { group: webhookGroup })).length > 0
}

/** Creates the group if it is missing. Must be called before anything that wants webhooks is written: its cursor has to be before that. */
export async function openWebhooks(store: Store): Promise<void> {
  if (await isWanted(store)) return
  const [mark] = await store.run(takeMark, { known: Number.MAX_SAFE_INTEGER })
  await store.contend(openGroup, { group: webhookGroup, types: null, items: true, partitions: 1, seq: mark?.top ?? 0 })
}

const smallestWindow = 10
const largestWindow = 10_000
/** From this many events per turn on, the planner is busy and needs no wake-ups. */
const busyAt = 200
/** From this many deliveries per statement on, the next statement covers fewer events. */
const manyAt = 2_000

/** From this many times on, an event whose planning took too long is planned without what may be too large. */
const mostHeldUps = 3

/** Makes a planner. The group must exist. */
export function makePlanner(parts: PlannerParts): Service {
  const horizon = makeHorizon(parts.store)
  const pace: Pace = { window: 1_000, heldUps: 0 }
  const replan = makeReplanner(parts)
  return new Reader({
    store: parts.store,
    wakeups: parts.wakeups,
    group: webhookGroup,
    leaseMs: parts.leaseMs,
    beatMs: parts.beatMs,
    careful: 1,
    async turn(cursor) {
      await replan(cursor)
      return planOn(parts, horizon, pace, cursor)
    },
    onError: parts.onError,
  })
}

interface Pace {
  /** How many log positions one statement covers: fewer if each results in many deliveries. */
  window: number
  /** How often the planning of a single event was cancelled or waited too long. */
  heldUps: number
}

type Turn = number | 'lost'

async function planOn(parts: PlannerParts, horizon: Horizon, pace: Pace, cursor: HeldCursor): Promise<Turn> {
  const { safe, top, restores } = await horizon.look()
  if (cursor.isRestored(restores)) return 'lost'
  if (safe <= cursor.seq) return rest(parts, cursor, top)
  cursor.heldBack = undefined
  const seq = Math.min(safe, cursor.seq + pace.window)
  try {
    const planned = await plan(parts, cursor, seq)
    if (planned === 'lost') return 'lost'
    pace.window = nextWindow(pace.window, planned)
    pace.heldUps = 0
    return 0
  } catch (error) {
    return planFailed(parts, pace, cursor, { seq, error })
  }
}

/** Plans the events up to a position. Returns how many deliveries that made. */
async function plan(parts: PlannerParts, cursor: HeldCursor, seq: number, isBare = false): Promise<number | 'lost'> {
  const { store, maxBytes, publicUrl, onPlanned } = parts
  const wantsWake = cursor.wantsWake && seq - cursor.seq < busyAt
  const move = { ...cursor.fence, from: cursor.seq, seq, wantsWake }
  const [planned] = await store.contend(planDeliveries, { ...move, maxBytes, publicUrl, isBare })
  if (!planned) return 'lost'
  cursor.moved(seq, wantsWake)
  if (planned.planned > 0) onPlanned(planned.planned)
  return planned.planned
}

/** Perhaps it was too much for one statement, or one of the events can't be planned. So the next statement covers fewer, down to one. */
async function planFailed(
  parts: PlannerParts,
  pace: Pace,
  cursor: HeldCursor,
  { seq, error }: { seq: number; error: unknown },
): Promise<Turn> {
  if (isNobodys(error)) throw error
  const isAlone = seq - cursor.seq === 1
  pace.window = Math.max(1, Math.floor((seq - cursor.seq) / 4))
  if (isHeldUp(error) && !(isAlone && ++pace.heldUps >= mostHeldUps)) throw error
  if (!isAlone) return 0
  pace.heldUps = 0
  return planAlone(parts, cursor, seq, error)
}

/** An event that can't be planned must not hold up all others. It is planned without what may be unreadable, or else parked. */
async function planAlone(parts: PlannerParts, cursor: HeldCursor, seq: number, error: unknown): Promise<Turn> {
  try {
    const planned = await plan(parts, cursor, seq, true)
    if (planned === 'lost') return 'lost'
    if (planned > 0) parts.onError(new Error(`The webhooks of event ${seq} lack its data: ${messageOf(error)}`))
    return 0
  } catch (again) {
    if (isNobodys(again)) throw again
    return parkUnplanned(parts, cursor, seq, again)
  }
}

function nextWindow(window: number, planned: number): number {
  return planned > manyAt ? Math.max(smallestWindow, Math.floor(window / 2)) : Math.min(largestWindow, window * 2)
}

/** Nothing can be read. The planner asks for wake-ups first and then looks once more, or it would miss events written in between. */
async function rest(parts: PlannerParts, cursor: HeldCursor, top: number): Promise<Turn> {
  if (top > cursor.seq) return Math.min(parts.pollMs, nextLookMs(cursor.heldBackMs()))
  if (cursor.wantsWake) return parts.pollMs
  const move = { ...cursor.fence, from: cursor.seq, seq: cursor.seq, wantsWake: true }
  const [moved] = await parts.store.contend(moveCursor, move)
  if (!moved) return 'lost'
  cursor.moved(cursor.seq, true)
  return 0
}
