/**
 * How this process is, in memory that its main thread writes and its heartbeat thread reads.
 *
 * A message would wait until the main thread is free to send it, and a thread that blocks is what is to be seen from outside.
 */
const slots = { running: 0, unresponsive: 1, isIdle: 2, turnedAt: 3 } as const
const slotBytes = Int32Array.BYTES_PER_ELEMENT
const lateMs = 500

/** What is told of a handler that was told to end and did not. */
export interface UnresponsiveHandler {
  id: string
  attempt: number
  kind: string
  stage: string
  /** Why it was told to end. */
  reason: string
  /** When it was told to end. */
  since: string
}

/** What a heartbeat tells of its process. */
export interface Vitals {
  isClaiming: boolean
  /** Handlers that take a place. */
  busy: number
  /** Handlers that were given up. */
  unresponsive: number
  /** How long the event loop has not turned. */
  blockedMs: number
}

/** The vitals of a process about which nothing is known yet. */
export const freshVitals: Vitals = { isClaiming: true, busy: 0, unresponsive: 0, blockedMs: 0 }

/** Memory for vitals. */
export function vitalsMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(Object.keys(slots).length * slotBytes)
}

// 32 bits of a clock of milliseconds are enough, because only differences are of use
const clock = () => Number(process.hrtime.bigint() / 1_000_000n) | 0

/** Writes the vitals, from each turn of the main thread's clock. */
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
    // a turn that is merely due, or a little late on a busy machine, is nothing to tell
    blockedMs: sinceMs > lateMs ? sinceMs : 0,
  }
}
