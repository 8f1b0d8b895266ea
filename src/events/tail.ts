import type { Runner } from '../postgres/store.ts'
import { pause } from '../service/service.ts'
import { browse, placeBack } from './browse.ts'
import { eventOf, type LogEvent } from './event.ts'
import { endOf, makeHorizon } from './horizon.ts'
import type { Wakeups } from './wakeups.ts'

/** Which events to read, and from where. */
export interface TailOptions {
  types: string[] | null
  tenant: string | null
  jobId: string | null
  /** Whether to include events of fan-out items. */
  items: boolean
  /** Start after this position in the log. */
  after: number | null
  /** Start this many of these events before the end. */
  back: number
  /** Whether to continue with new events. */
  follows: boolean
  signal: AbortSignal
  /** A longer backlog than this is skipped. */
  mostBehind: number
  /** Called with the number of skipped positions. */
  onSkipped: (count: number) => void
  /** How often to poll without a wake-up. */
  pollMs: number
}

const batch = 500

/** The events of the log in order, from a position on, without a group: the position is not stored. */
export async function* tail(store: Runner, wakeups: Wakeups, options: TailOptions): AsyncGenerator<LogEvent> {
  const { signal, follows, types, tenant, jobId, items, pollMs } = options
  const filter = { types, tenant, jobId, items }
  const horizon = makeHorizon(store)
  let woken = new AbortController()
  const unhear = follows ? wakeups.hear(() => woken.abort()) : undefined
  try {
    // to follow from a position on, there is no need to know the end, or to wait for open transactions
    const now = follows && options.after !== null ? 0 : await endOf(horizon)
    let after = options.after ?? (await placeBack(store, filter, now, options.back))
    let { safe, top } = await horizon.look()
    // a position after the end is from before a restore
    after = Math.min(after, top)
    // to only look back, there is no need to wait for open transactions
    if (!follows) safe = now
    const end = follows ? Number.POSITIVE_INFINITY : now
    for (let quiet = 0; !signal.aborted && after < end; ) {
      if (follows && safe - after > options.mostBehind) {
        options.onSkipped(safe - after)
        after = safe
      }
      const { rows, reached } = await browse(store, filter, { after, upTo: safe, limit: batch })
      for (const row of rows) {
        if (signal.aborted) return
        yield eventOf(row)
      }
      quiet = reached > after ? 0 : quiet + 1
      after = reached
      if (after < safe) continue
      if (quiet > 0)
        await pause(top > safe ? Math.min(pollMs, 2 * quiet) : pollMs, AbortSignal.any([signal, woken.signal]))
      woken = new AbortController()
      ;({ safe, top } = await horizon.look())
      after = Math.min(after, top)
    }
  } finally {
    await unhear?.()
  }
}
