/**
 * Who may have a prefetched job: the main thread, which starts it, or the heartbeat thread, which gives it back.
 *
 * A handler that blocks the event loop keeps the main thread from starting what it has claimed, and from giving it back. The heartbeat
 * thread does that instead. The invariant: a job is started or given back, never both. Both threads change the same memory, and each
 * change is one compare-and-exchange, so that of the two exactly one wins:
 * - Prefetched jobs are numbered. The main thread takes the next one by moving the cursor past it, before its handler begins. The
 *   heartbeat thread takes all that it was told of by marking the cursor as seized.
 * - A claim under way has a ticket. The main thread takes its rows by putting the ticket away when the answer comes; the heartbeat
 *   thread takes them by marking the ticket as seized. While it is, the main thread claims nothing, so that whatever appears in the
 *   session's name is of that one claim.
 */
const slots = { cursor: 0, seizedTo: 1, ticket: 2 } as const
const seized = 0x4000_0000
const mask = seized - 1
const noTicket = 0

/** Memory for a handover. */
export function handoverMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(Object.keys(slots).length * Int32Array.BYTES_PER_ELEMENT)
}

/** How many numbers lie between two, of which the second is not before the first. */
export function distance(from: number, to: number): number {
  return (to - from) & mask
}

/** The number that comes so many later. */
export function later(from: number, count: number): number {
  return (from + count) & mask
}

/** The side of the main thread. */
export class Taker {
  readonly #cells: Int32Array
  #next = 0
  #ticket = noTicket

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory)
  }

  /** The number of the next job to be taken. */
  get next(): number {
    return this.#next
  }

  /** Takes so many; false if the other side was first. */
  take(count: number): boolean {
    const next = later(this.#next, count)
    if (Atomics.compareExchange(this.#cells, slots.cursor, this.#next, next) !== this.#next) return false
    this.#next = next
    return true
  }

  /** After a take that failed: answers how many the other side has taken. */
  yielded(): number {
    const to = Atomics.load(this.#cells, slots.seizedTo)
    const count = distance(this.#next, to)
    this.#next = to
    Atomics.store(this.#cells, slots.cursor, to)
    return count
  }

  /** Answers the ticket of a claim that is about to be sent; null while the other side still gives back what an earlier one brought. */
  beginClaim(): number | null {
    const ticket = later(this.#ticket, 1) || 1
    if (Atomics.compareExchange(this.#cells, slots.ticket, noTicket, ticket) !== noTicket) return null
    this.#ticket = ticket
    return ticket
  }

  /** The claim was answered, or failed. False if the other side has taken what it brings. */
  endClaim(): boolean {
    return Atomics.compareExchange(this.#cells, slots.ticket, this.#ticket, noTicket) === this.#ticket
  }

  /** There is no other side any more, or a fresh one: what it had seized is nobody's. */
  forgetClaim(): void {
    Atomics.compareExchange(this.#cells, slots.ticket, this.#ticket | seized, noTicket)
  }
}

/** The side of the heartbeat thread. */
export class Seizer {
  readonly #cells: Int32Array

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new Int32Array(memory)
  }

  /** The number of the next job that the main thread will take; null while a seizure was not noticed yet. */
  cursor(): number | null {
    const cursor = Atomics.load(this.#cells, slots.cursor)
    return cursor & seized ? null : cursor
  }

  /** Takes all from there to that number; false if the main thread has moved meanwhile. */
  seize(from: number, to: number): boolean {
    Atomics.store(this.#cells, slots.seizedTo, to)
    return Atomics.compareExchange(this.#cells, slots.cursor, from, from | seized) === from
  }

  /** What a seized claim had brought is given back: the main thread may claim again. */
  putBackClaim(): void {
    Atomics.store(this.#cells, slots.ticket, noTicket)
  }

  /** Takes what the claim with this ticket brings; false if it was answered already. */
  seizeClaim(ticket: number): boolean {
    return Atomics.compareExchange(this.#cells, slots.ticket, ticket, ticket | seized) === ticket
  }
}
