/**
 * Decides which thread gets a prefetched job: the main thread, to start it, or the heartbeat thread, to release it.
 *
 * While a handler blocks the event loop, the main thread can neither start nor release what it has claimed, so the
 * heartbeat thread releases it. The invariant: a job is started or released, never both. Both threads write to the same
 * memory, and each write is one compare-and-exchange, so exactly one of them wins:
 * - Prefetched jobs are numbered. The main thread takes the next one by moving the cursor past it, before its handler
 *   starts. The heartbeat thread takes all jobs that it knows of by marking the cursor as seized.
 * - A claim under way has a ticket. The main thread takes its rows by clearing the ticket when the answer arrives; the
 *   heartbeat thread takes them by marking the ticket as seized. Until it clears the mark, the main thread claims
 *   nothing, so all new leases of the session belong to that one claim.
 */
const slots = { cursor: 0, seizedTo: 1, ticket: 2 } as const
const seized = 0x4000_0000
const mask = seized - 1
const noTicket = 0

/** Memory for a handover. */
export function handoverMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(Object.keys(slots).length * Int32Array.BYTES_PER_ELEMENT)
}

/** How far it is from one number to a later one. Numbers wrap around. */
export function distance(from: number, to: number): number {
  return (to - from) & mask
}

/** The number that is so many later. */
export function later(from: number, count: number): number {
  return (from + count) & mask
}

/** The main thread's side. */
export class Taker {
  readonly #cells: Int32Array
  #next = 0
  #ticket = noTicket

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory)
  }

  /** The number of the next job to take. */
  get next(): number {
    return this.#next
  }

  /** Takes that many jobs; false if the heartbeat thread was first. */
  take(count: number): boolean {
    const next = later(this.#next, count)
    if (Atomics.compareExchange(this.#cells, slots.cursor, this.#next, next) !== this.#next) return false
    this.#next = next
    return true
  }

  /** After a failed `take`: returns how many jobs the heartbeat thread has taken, and skips them. */
  yielded(): number {
    const to = Atomics.load(this.#cells, slots.seizedTo)
    const count = distance(this.#next, to)
    this.#next = to
    Atomics.store(this.#cells, slots.cursor, to)
    return count
  }

  /** Returns a ticket for a claim; null while the heartbeat thread is still releasing the jobs of an earlier one. */
  beginClaim(): number | null {
    const ticket = later(this.#ticket, 1) || 1
    if (Atomics.compareExchange(this.#cells, slots.ticket, noTicket, ticket) !== noTicket) return null
    this.#ticket = ticket
    return ticket
  }

  /** The claim was answered, or failed. Returns false if the heartbeat thread has taken its jobs. */
  endClaim(): boolean {
    return Atomics.compareExchange(this.#cells, slots.ticket, this.#ticket, noTicket) === this.#ticket
  }

  /** A new heartbeat thread knows nothing of the claim that its predecessor seized, so the seizure is void. */
  forgetClaim(): void {
    Atomics.compareExchange(this.#cells, slots.ticket, this.#ticket | seized, noTicket)
  }
}

/** The heartbeat thread's side. */
export class Seizer {
  readonly #cells: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory)
  }

  /** The number of the next job that the main thread will take; null if it hasn't noticed the last seizure yet. */
  cursor(): number | null {
    const cursor = Atomics.load(this.#cells, slots.cursor)
    return cursor & seized ? null : cursor
  }

  /** Takes all jobs from one number up to another; false if the main thread has taken any in the meantime. */
  seize(from: number, to: number): boolean {
    Atomics.store(this.#cells, slots.seizedTo, to)
    return Atomics.compareExchange(this.#cells, slots.cursor, from, from | seized) === from
  }

  /** The jobs of a seized claim are released: the main thread may claim again. */
  putBackClaim(): void {
    Atomics.store(this.#cells, slots.ticket, noTicket)
  }

  /** Takes the jobs of the claim with this ticket; false if the main thread has its answer already. */
  seizeClaim(ticket: number): boolean {
    return Atomics.compareExchange(this.#cells, slots.ticket, ticket, ticket | seized) === ticket
  }
}
