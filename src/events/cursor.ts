import { type ClaimedCursor, type CursorFence, carefulAfter } from './group.sql.ts'

/** How far one read may look: a group that wants few types must not scan a million rows in one statement. */
const largestWindow = 20_000
/** By how much the window shrinks and grows. */
const windowFactor = 8
const mostHeldUps = 3
/** How long the files of the server may be unreadable before the next event is to blame. */
const longestFileErrorMs = 600_000
/** After so many events in a row of which nothing can be read, there is a pause before the next. */
const mostUnread = { inARow: 10, pauseMs: 1_000 }

/** A cursor that this process holds: how far its group has read, and the signals that end the reading. */
export class HeldCursor {
  readonly fence: CursorFence
  readonly partitions: number
  /** Events up to here are read one by one, because one of them may kill its reader. */
  readonly carefulUntil: number
  /** Everything up to here is handled. */
  seq: number
  /** The position that the database knows, and since when. */
  movedSeq: number
  movedMs = performance.now()
  /** How many readers died here without moving the cursor. */
  crashes: number
  wantsWake = false
  /** How many log positions the next read covers at most: fewer after one that failed. */
  window = largestWindow
  /** How often the read of a single position was cancelled or waited too long. */
  heldUps = 0
  /** Since when files of the server can't be read. */
  #brokenSinceMs: number | undefined
  #unread = 0
  /** Since when, and as last reported when, an open transaction has kept events from being read. */
  heldBack: { sinceMs: number; toldMs: number } | undefined
  readonly #leaving = new AbortController()
  readonly #lost = new AbortController()
  #restores: number | undefined

  constructor(fence: CursorFence, { seq, crashes, careful_until }: ClaimedCursor, partitions: number) {
    this.fence = fence
    this.partitions = partitions
    this.carefulUntil = crashes >= carefulAfter ? careful_until : 0
    this.seq = seq
    this.movedSeq = seq
    this.crashes = crashes
  }

  /** Fires when no further event should be begun. */
  get leaving(): AbortSignal {
    return this.#leaving.signal
  }

  /** Fires when another reader has the cursor, or soon may: a running handler should end. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  leave(): void {
    this.#leaving.abort()
  }

  lose(): void {
    this.#lost.abort()
    this.#leaving.abort()
  }

  /** Notes that the database has moved the cursor. */
  moved(seq: number, wantsWake = this.wantsWake): void {
    this.seq = seq
    this.movedSeq = seq
    this.movedMs = performance.now()
    this.wantsWake = wantsWake
    this.crashes = Math.min(this.crashes, carefulAfter)
  }

  /** Notes that a read worked. */
  readWorked(): void {
    this.heldUps = 0
    this.#brokenSinceMs = undefined
    this.#unread = 0
    this.window = Math.min(largestWindow, this.window * windowFactor)
  }

  /**
   * Notes that a read of so many positions failed: one of the events may be unreadable, or all of them together too large. The next read covers
   * fewer. Returns whether the next event alone is to blame.
   */
  readFailed(positions: number, isHeldUp: boolean): boolean {
    this.window = Math.max(1, Math.floor(positions / windowFactor))
    if (positions > 1) return false
    this.heldUps = isHeldUp ? this.heldUps + 1 : mostHeldUps
    if (this.heldUps < mostHeldUps) return false
    this.heldUps = 0
    return true
  }

  /** Whether files of the server can't be read only since a moment ago, so that its disk may be to blame. */
  mayHeal(): boolean {
    this.#brokenSinceMs ??= performance.now()
    return performance.now() - this.#brokenSinceMs < longestFileErrorMs
  }

  /** Notes that an event was parked of which nothing can be read. Returns how long to wait before the next: the cause may be another. */
  parkedUnknown(): number {
    this.#unread += 1
    return this.#unread < mostUnread.inARow ? 0 : mostUnread.pauseMs
  }

  /** How long an open transaction has held it back. */
  heldBackMs(): number {
    const nowMs = performance.now()
    this.heldBack ??= { sinceMs: nowMs, toldMs: nowMs }
    return nowMs - this.heldBack.sinceMs
  }

  /** Whether the log was replaced by an earlier one since the cursor was claimed. It must then be claimed again, with its position there. */
  isRestored(restores: number): boolean {
    this.#restores ??= restores
    return this.#restores !== restores
  }
}

/** When to look again for events that an open transaction holds back: most transactions end within milliseconds, some take hours. */
export function nextLookMs(heldBackMs: number): number {
  return 2 + heldBackMs / 4
}
