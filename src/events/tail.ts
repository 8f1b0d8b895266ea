import { pause } from '../service/service.ts'
import type { Runner } from '../store/store.ts'
import { browse, placeBack } from './browse.ts'
import { eventOf, type LogEvent } from './event.ts'
import { endOf, makeTide } from './tide.ts'
import type { Wakeups } from './wakeups.ts'

/** What to follow. */
export interface TailOptions {
  types: string[] | null
  tenant: string | null
  jobId: string | null
  /** Whether also those of the items of fan-outs. */
  items: boolean
  /** Begin behind this place in the log. */
  after: number | null
  /** Begin so many of these events before the end. */
  back: number
  /** Whether to go on with what comes. */
  follows: boolean
  signal: AbortSignal
  /** Cuts a long backlog short: told how many numbers of the log were passed over. */
  mostBehind: number
  onSkipped: (count: number) => void
  /** How often to look if nothing wakes it. */
  pollMs: number
}

const batch = 500

/** The events of the log in order, from a place on, without a group: nobody remembers how far it came. */
export async function* tail(store: Runner, wakeups: Wakeups, options: TailOptions): AsyncGenerator<LogEvent> {
  const { signal, follows, types, tenant, jobId, items, pollMs } = options
  const filter = { types, tenant, jobId, items }
  const tide = makeTide(store)
  let woken = new AbortController()
  const unhear = follows ? wakeups.hear(() => woken.abort()) : undefined
  try {
    // whoever follows from a place on needs no end, and waits for nobody who still writes
    const now = follows && options.after !== null ? 0 : await endOf(tide)
    let after = options.after ?? (await placeBack(store, filter, now, options.back))
    let { safe, top } = await tide.look()
    // whoever only looks back sees what is there, and waits for nobody who still writes
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
      ;({ safe, top } = await tide.look())
    }
  } finally {
    await unhear?.()
  }
}
