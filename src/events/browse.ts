import { isPassing } from '../postgres/connection.ts'
import type { Runner } from '../postgres/store.ts'
import { type EventRow, eventOf, type LogEvent } from './event.ts'
import { endOf, makeHorizon } from './horizon.ts'
import {
  type BrowseFilter,
  browseEvents,
  browseJobEvents,
  browseTenantEvents,
  placeBeforeEnd,
  placeBeforeEndOfJob,
} from './log.sql.ts'

/** How many rows one statement scans. */
const mostRows = 10_000
/** How many statements search for one page. */
const mostLooks = 5
/** The same for the tenant `default`, which has no index: pages that are empty because of other tenants would show how active those are. */
const mostLooksOfDefault = 16
/** How much narrower a range gets that can't be read. */
const narrower = 8
/** How far back to search for the latest events. */
export const mostBack = 100_000

/** A part of the log. */
export interface Stretch {
  rows: EventRow[]
  /** There are no further matching events up to here. */
  reached: number
}

/** Whether an index finds the events. The tenant `default` has none. */
const isIndexed = ({ tenant }: BrowseFilter) => tenant !== null && tenant !== 'default'
/** The number of rows that fills most pages. */
const fewRows = (limit: number) => Math.min(mostRows, 2 * limit + 50)

/** What part of the log to read. */
interface Range {
  after: number
  upTo: number
  limit: number
  most?: number
  isBare?: boolean
}

/**
 * Matching events after one position, up to another. A stretch may be empty although more events follow: check `reached`. An event whose data
 * can't be read comes without it: it must not keep a reader from all that follow.
 */
export async function browse(store: Runner, filter: BrowseFilter, range: Range): Promise<Stretch> {
  if (range.upTo <= range.after) return { rows: [], reached: range.after }
  try {
    return await scan(store, filter, range)
  } catch (error) {
    if (isPassing(error)) throw error
    return browseLess(store, filter, range, error)
  }
}

/** The first part of a range that can be read. Throws if even an event without its data can't be. */
async function browseLess(store: Runner, filter: BrowseFilter, range: Range, error: unknown): Promise<Stretch> {
  const width = range.upTo - range.after
  if (width === 1) return scan(store, filter, { ...range, isBare: true }).catch(() => Promise.reject(error))
  const less = { ...range, upTo: range.after + Math.max(1, Math.floor(width / narrower)) }
  return scan(store, filter, less).catch((again) => {
    if (isPassing(again)) throw again
    return browseLess(store, filter, less, again)
  })
}

async function scan(store: Runner, filter: BrowseFilter, range: Range): Promise<Stretch> {
  const { upTo, limit, most } = range
  if (filter.jobId !== null) {
    const rows = await store.run(browseJobEvents, { ...filter, ...range })
    return { rows, reached: rows.length < limit ? upTo : (rows.at(-1) as EventRow).seq }
  }
  const look = isIndexed(filter) ? browseTenantEvents : browseEvents
  const found = await store.run(look, { ...filter, ...range, most: most ?? fewRows(limit) })
  const rows = found.filter((row): row is typeof row & EventRow => row.seq !== null)
  const reached = rows.length < limit ? (found[0]?.reached ?? upTo) : (rows.at(-1) as EventRow).seq
  return { rows, reached }
}

/** A page of the log, oldest first. It may be short, even empty, although more events follow: check `next`. */
export interface EventPage {
  events: LogEvent[]
  /** The `after` of the next page; null if the end of the log was reached. */
  next: number | null
}

/** One page. It scans at most 50,000 events: those of the tenant if there is one, or else all. Events of one job are all scanned. */
export async function eventPage(
  store: Runner,
  filter: BrowseFilter,
  { after, limit }: { after: number; limit: number },
): Promise<EventPage> {
  const upTo = await endOf(makeHorizon(store))
  const rows: EventRow[] = []
  const most = filter.tenant === 'default' ? mostLooksOfDefault : mostLooks
  let reached = after
  for (let looks = 0; looks < most && rows.length < limit && reached < upTo; looks++) {
    const range = { after: reached, upTo, limit: limit - rows.length }
    const stretch = await browse(store, filter, looks === 0 ? range : { ...range, most: mostRows })
    rows.push(...stretch.rows)
    reached = stretch.reached
  }
  return { events: rows.map(eventOf), next: reached < upTo ? reached : null }
}

/** The position with this many matching events after it. For rare events, it goes back no further than the latest 100,000 events. */
export async function placeBack(store: Runner, filter: BrowseFilter, end: number, back: number): Promise<number> {
  if (back === 0) return end
  const [place] =
    filter.jobId === null
      ? await store.run(placeBeforeEnd, { ...filter, upTo: end, back, most: mostBack })
      : await store.run(placeBeforeEndOfJob, { ...filter, upTo: end, back })
  return place?.seq ?? end
}
