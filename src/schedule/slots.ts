import { setImmediate as breath } from 'node:timers/promises'
import { cronPattern } from './cron.ts'

/** When a schedule runs, checked. Either `cron` or `everyMs` is set. */
export interface Timing {
  cron: string | null
  everyMs: number | null
  tz: string
  startsAt: Date | null
  endsAt: Date | null
}

/** The slots of a schedule. */
export interface Slots {
  /** The first slot after an instant; null if there is none. */
  next(afterMs: number): number | null
  /** The slots from `fromMs` to `toMs`, both included: how many, up to `most`, and the last of them. */
  between(fromMs: number, toMs: number, most: number): Range
  /** The latest slots from `fromMs` to `toMs`, both included: at most that many, oldest first. */
  latest(fromMs: number, toMs: number, most: number): number[]
}

/** Slots in a row. */
export interface Range {
  /** How many there are; `most` stands for that many or more. */
  count: number
  lastMs: number | null
}

/** The slots of a timing. */
export function slotsOf({ cron, everyMs, tz, startsAt, endsAt }: Timing): Slots {
  const first = startsAt?.getTime() ?? Number.NEGATIVE_INFINITY
  const last = endsAt?.getTime() ?? Number.POSITIVE_INFINITY
  const plain = cron === null ? interval(everyMs as number, startsAt?.getTime() ?? 0) : cronPattern(cron, tz).next
  const next = (afterMs: number) => {
    const found = plain(Math.max(afterMs, first - 1))
    return found !== null && found <= last ? found : null
  }
  return {
    next,
    between: (fromMs, toMs, most) =>
      cron === null
        ? rangeOfInterval(next, everyMs as number, { fromMs, toMs: Math.min(toMs, last), most })
        : rangeOf(next, { fromMs, toMs, most }),
    latest: (fromMs, toMs, most) => latestOf(next, { fromMs, toMs, most }),
  }
}

/** How long slots are computed before other work of the process gets its turn. */
const spellMs = 10

/** The first slots from `fromMs` to `toMs`, both included, at most that many. */
export async function walk({ next }: Slots, { fromMs, toMs, most }: Bounds): Promise<Date[]> {
  const found: Date[] = []
  let spellEndMs = performance.now() + spellMs
  for (let at = next(fromMs - 1); at !== null && at <= toMs && found.length < most; at = next(at)) {
    found.push(new Date(at))
    if (performance.now() < spellEndMs) continue
    await breath()
    spellEndMs = performance.now() + spellMs
  }
  return found
}

/** Intervals are counted from the start, or else from 1970: neither a restart nor an edit shifts them. */
function interval(everyMs: number, anchorMs: number): (afterMs: number) => number {
  return (afterMs) => anchorMs + (Math.floor((afterMs - anchorMs) / everyMs) + 1) * everyMs
}

/** A range of time, and how many of its slots are wanted. */
interface Bounds {
  fromMs: number
  toMs: number
  most: number
}

function rangeOfInterval(next: Slots['next'], everyMs: number, { fromMs, toMs, most }: Bounds): Range {
  const first = next(fromMs - 1)
  if (first === null || first > toMs) return { count: 0, lastMs: null }
  const steps = Math.floor((toMs - first) / everyMs)
  return { count: Math.min(most, steps + 1), lastMs: first + steps * everyMs }
}

/** Counts slots one by one. If there are more than `most`, it looks for the last one from the end. */
function rangeOf(next: Slots['next'], { fromMs, toMs, most }: Bounds): Range {
  let count = 0
  let lastMs: number | null = null
  for (let at = next(fromMs - 1); at !== null && at <= toMs; at = next(at)) {
    count += 1
    lastMs = at
    if (count >= most) return { count, lastMs: latestOf(next, { fromMs, toMs, most: 1 })[0] as number }
  }
  return { count, lastMs }
}

/** Searches from the end, in ranges that are each twice as long, until one has enough slots. */
function latestOf(next: Slots['next'], { fromMs, toMs, most }: Bounds): number[] {
  for (let backMs = 1_000; ; backMs *= 2) {
    const startMs = Math.max(fromMs, toMs - backMs)
    const found: number[] = []
    for (let at = next(startMs - 1); at !== null && at <= toMs; at = next(at)) found.push(at)
    if (found.length >= most || startMs === fromMs) return found.slice(-most)
  }
}
