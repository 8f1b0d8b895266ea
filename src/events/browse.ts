import type { Runner } from '../store/store.ts'
import { type EventRow, eventOf, type LogEvent } from './event.ts'
import {
  type BrowseFilter,
  browseEvents,
  browseJobEvents,
  browseTenantEvents,
  placeBeforeEnd,
  placeBeforeEndOfJob,
} from './log.sql.ts'
import { endOf, makeTide } from './tide.ts'

/** How many rows one statement looks at. */
const mostRows = 10_000
/** How many statements look for one page. */
const mostLooks = 5
/** The same for the tenant `default`, which no index finds: pages that are empty because of others would tell how much those do. */
const mostLooksOfDefault = 15
/** How far back the latest events are looked for. */
export const mostBack = 100_000

/** A part of the log, from a place on. */
export interface Stretch {
  rows: EventRow[]
  /** Everything wanted up to here is among the rows, or was before. */
  reached: number
}

/** Whether the events of a tenant are wanted that has an index for them. */
const isIndexed = ({ tenant }: BrowseFilter) => tenant !== null && tenant !== 'default'
/** So many rows of a tenant fill most pages. */
const fewRows = (limit: number) => Math.min(mostRows, 2 * limit + 50)

/** Wanted events behind a place, up to another one. A stretch may be empty although more comes: only `reached` tells. */
export async function browse(
  store: Runner,
  filter: BrowseFilter,
  { after, upTo, limit, most }: { after: number; upTo: number; limit: number; most?: number },
): Promise<Stretch> {
  if (upTo <= after) return { rows: [], reached: after }
  if (filter.jobId !== null) {
    const rows = await store.run(browseJobEvents, { ...filter, after, upTo, limit })
    return { rows, reached: rows.length < limit ? upTo : (rows.at(-1) as EventRow).seq }
  }
  const found = isIndexed(filter)
    ? await store.run(browseTenantEvents, { ...filter, after, upTo, limit, most: most ?? fewRows(limit) })
    : await store.run(browseEvents, { ...filter, after, upTo, limit, most: mostRows })
  const rows = found.filter((row): row is typeof row & EventRow => row.seq !== null)
  const reached = rows.length < limit ? (found[0]?.reached ?? upTo) : (rows.at(-1) as EventRow).seq
  return { rows, reached }
}

/** A page of the log, oldest first. It may be short, even empty, although more comes: only `next` tells. */
export interface EventPage {
  events: LogEvent[]
  /** The `after` of the next page; null if the end of the log was reached. */
  next: number | null
}

/** One page. At most 50,000 events are looked at: of the tenant, if one is given, and of all otherwise. Those of one job are all looked at. */
export async function eventPage(
  store: Runner,
  filter: BrowseFilter,
  { after, limit }: { after: number; limit: number },
): Promise<EventPage> {
  const upTo = await endOf(makeTide(store))
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

/** The place that has so many of the wanted events before the end; of rare ones, it is no farther back than the latest 100,000 of all. */
export async function placeBack(store: Runner, filter: BrowseFilter, end: number, back: number): Promise<number> {
  if (back === 0) return end
  const [place] =
    filter.jobId === null
      ? await store.run(placeBeforeEnd, { ...filter, upTo: end, back, most: mostBack })
      : await store.run(placeBeforeEndOfJob, { ...filter, upTo: end, back })
  return place?.seq ?? end
}
