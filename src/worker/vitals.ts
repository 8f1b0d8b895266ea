/**
 * The health of this process, in memory that its main thread writes and its heartbeat thread reads. A message wouldn't
 * do: a blocked main thread can't send any, and that it is blocked is what others need to see.
 */
const slots = { running: 0, unresponsive: 1, isIdle: 2, turnedAt: 3 } as const
const slotBytes = Int32Array.BYTES_PER_ELEMENT
const lateMs = 500

/** A handler that was aborted and didn't return within the grace period. */
export interface UnresponsiveHandler {
  id: string
  attempt: number
  kind: string
  stage: string
  /** Why it was aborted. */
  reason: string
  /** When it was aborted. */
  since: string
}

/** What a heartbeat says about its process. */
export interface Vitals {
  isClaiming: boolean
  /** Handlers that take a slot. */
  busy: number
  /** Handlers that ignore their signal, whose slots are free. */
  unresponsive: number
  /** How long the event loop has been blocked. */
  blockedMs: number
}

/** The vitals of a process that hasn't reported any yet. */
export const freshVitals: Vitals = { isClaiming: true, busy: 0, unresponsive: 0, blockedMs: 0 }

/** Memory for vitals. */
export function vitalsMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(Object.keys(slots).length * slotBytes)
}

// 32 bits of a millisecond clock are enough, because only differences matter
const clock = () => Number(process.hrtime.bigint() / 1_000_000n) | 0

/** Writes the vitals, at every tick of the main thread. */
export function writeVitals(memory: SharedArrayBuffer, vitals: Omit<Vitals, 'blockedMs'>): void {
  const cells = new Int32Array(memory)
  Atomics.store(cells, slots.running, vitals.busy)
  Atomics.store(cells, slots.unresponsive, vitals.unresponsive)
  Atomics.store(cells, slots.isIdle, vitals.isClaiming ? 0 : 1)
  Atomics.store(cells, slots.turnedAt, clock())
}

/** Reads the vitals, from any thread. */
export function readVitals(memory: SharedArrayBuffer): Vitals {
  const cells = new Int32Array(memory)
  const turnedAt = Atomics.load(cells, slots.turnedAt)
  const sinceMs = turnedAt === 0 ? 0 : (clock() - turnedAt) | 0
  return {
    isClaiming: Atomics.load(cells, slots.isIdle) === 0,
    busy: Atomics.load(cells, slots.running),
    unresponsive: Atomics.load(cells, slots.unresponsive),
    // a tick that is only a little late, as on a busy machine, doesn't count
    blockedMs: sinceMs > lateMs ? sinceMs : 0,
  }
}
