import type { OrphanRow } from './revive.sql.ts'

/** Limits how much of the leader's time bad rows take: they rest this many times as long as trying all of them takes. */
const share = 10
/** The least time that trying one row counts for. While there are few, each counts for exactly this, so they are tried in every sweep. */
const leastMs = 1
const few = 100
const longestMs = 60_000
/** How long held rows rest if they may hide others. */
const heldMs = 1_000

interface Rest {
  readonly untilMs: number
  readonly error: unknown
}

/**
 * Orphans that could not be moved, and rest until they are tried again. A few cost nothing and are tried in every sweep. Many rest longer:
 * otherwise the leader would do nothing else, and jobs of the next dead worker would wait behind them.
 */
export class Resting {
  readonly #rests = new Map<string, Rest>()

  get size(): number {
    return this.#rests.size
  }

  /** Splits found rows into those that are due and those that rest, and forgets rests that are over. */
  split(found: readonly OrphanRow[]): { due: OrphanRow[]; resting: { id: string; lost_ms: number; error: unknown }[] } {
    const nowMs = performance.now()
    for (const [id, { untilMs }] of this.#rests) if (untilMs <= nowMs) this.#rests.delete(id)
    const resting = found.flatMap(({ id, lost_ms }) => {
      const rest = this.#rests.get(id)
      return rest ? [{ id, lost_ms, error: rest.error }] : []
    })
    return { due: found.filter(({ id }) => !this.#rests.has(id)), resting }
  }

  /** Lets refused rows rest. The more there are, and the longer these took, the longer they rest. */
  refused(rows: readonly { id: string; error: unknown }[], tookMs: number): void {
    const eachMs = rows.length < few ? leastMs : Math.max(leastMs, tookMs / rows.length)
    const untilMs = performance.now() + Math.min(longestMs, share * eachMs * (this.#rests.size + rows.length))
    for (const { id, error } of rows) this.#rests.set(id, { untilMs, error })
  }

  /** Lets held rows rest, so that the next batch contains others. */
  held(rows: readonly { id: string; error: unknown }[]): void {
    const untilMs = performance.now() + heldMs
    for (const { id, error } of rows) this.#rests.set(id, { untilMs, error })
  }
}
