// Turns events into deliveries. The invariant: every event that somebody wants has its deliveries, each once, whoever dies when.
//
// The planner is a group of readers with one cursor, so one process at a time plans, and its fence is in the very statement that
// inserts the deliveries and moves the cursor: either both happen or neither.
//
// An endpoint wants what happens from its creation on. That nothing of this is missed although the endpoint may commit late follows
// from how the tide works: an event is read only when all transactions that had an id when its number was the last one have ended. An
// endpoint that is still invisible then got its transaction id later, and read the end of the log later still: its since_seq is behind all
// events that are read.
import { findGroup, moveCursor, openGroup } from '../events/group.sql.ts'
import { type HeldCursor, makeReader } from '../events/reader.ts'
import { takeMark } from '../events/tide.sql.ts'
import { makeTide, type Tide } from '../events/tide.ts'
import type { Wakeups } from '../events/wakeups.ts'
import type { Service } from '../service/service.ts'
import type { Runner, Store } from '../store/store.ts'
import { planDeliveries } from './plan.sql.ts'

/** The group of readers that plans webhooks. */
export const webhookGroup = 'webhooks'

/** What a planner needs. */
export interface PlannerParts {
  store: Store
  wakeups: Wakeups
  pollMs: number
  leaseMs: number
  beatMs: number
  maxBytes: number
  publicUrl: string | null
  /** Told that there is something to send. */
  onPlanned: (count: number) => void
  onTrouble: (error: unknown) => void
}

/** Whether anybody has ever wanted a webhook in this database. */
export async function isWanted(store: Runner): Promise<boolean> {
  return (await store.run(findGroup, { group: webhookGroup })).length > 0
}

/** Makes the group if it is not there yet. To be called before anything is written that wants webhooks: its cursor stands before that. */
export async function openWebhooks(store: Runner): Promise<void> {
  if (await isWanted(store)) return
  const [mark] = await store.run(takeMark, { known: Number.MAX_SAFE_INTEGER })
  await store.run(openGroup, { group: webhookGroup, types: null, items: true, partitions: 1, seq: mark?.top ?? 0 })
}

const smallestWindow = 10
const largestWindow = 10_000
/** From this many events in one turn on, the planner is busy and needs nobody to wake it. */
const busyAt = 200
/** From this many deliveries in one statement on, the next one looks at fewer events. */
const manyAt = 2_000

/** Makes a planner. The group must exist. */
export function makePlanner(parts: PlannerParts): Service {
  const tide = makeTide(parts.store)
  const pace = { window: 1_000, waitingSinceMs: null as number | null }
  return makeReader({
    store: parts.store,
    wakeups: parts.wakeups,
    group: webhookGroup,
    leaseMs: parts.leaseMs,
    beatMs: parts.beatMs,
    careful: 1,
    turn: (held) => planOn(parts, tide, pace, held),
    onTrouble: parts.onTrouble,
  })
}

interface Pace {
  /** How many places of the log one statement looks at: fewer if each gives many deliveries. */
  window: number
  /** Since when somebody has been writing whom we must wait for. */
  waitingSinceMs: number | null
}

type Turn = number | 'lost'

async function planOn(parts: PlannerParts, tide: Tide, pace: Pace, held: HeldCursor): Promise<Turn> {
  const { safe, top } = await tide.look()
  if (safe <= held.seq) return rest(parts, pace, held, top)
  pace.waitingSinceMs = null
  const seq = Math.min(safe, held.seq + pace.window)
  const wantsWake = held.wantsWake && seq - held.seq < busyAt
  const { maxBytes, publicUrl } = parts
  const [planned] = await parts.store
    .run(planDeliveries, { ...held.fence, after: held.seq, seq, wantsWake, maxBytes, publicUrl })
    .catch((error) => {
      // too much for one statement, perhaps
      pace.window = Math.max(smallestWindow, Math.floor(pace.window / 4))
      throw error
    })
  if (!planned) return 'lost'
  noteMove(held, seq, wantsWake)
  pace.window = nextWindow(pace.window, planned.planned)
  if (planned.planned > 0) parts.onPlanned(planned.planned)
  return 0
}

function nextWindow(window: number, planned: number): number {
  return planned > manyAt ? Math.max(smallestWindow, Math.floor(window / 2)) : Math.min(largestWindow, window * 2)
}

/** Nothing can be read. Whoever wants to be woken must say so first and then look once more, or news in between would be missed. */
async function rest(parts: PlannerParts, pace: Pace, held: HeldCursor, top: number): Promise<Turn> {
  if (top > held.seq) {
    pace.waitingSinceMs ??= performance.now()
    return Math.min(parts.pollMs, 2 + (performance.now() - pace.waitingSinceMs) / 4)
  }
  if (held.wantsWake) return parts.pollMs
  const [moved] = await parts.store.run(moveCursor, { ...held.fence, seq: held.seq, wantsWake: true })
  if (!moved) return 'lost'
  noteMove(held, held.seq, true)
  return 0
}

function noteMove(held: HeldCursor, seq: number, wantsWake: boolean): void {
  held.seq = seq
  held.movedSeq = seq
  held.movedMs = performance.now()
  held.wantsWake = wantsWake
}
