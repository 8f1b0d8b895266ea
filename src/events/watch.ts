import { flagOf, idOf, limitOf, mustBeObject, placeOf, textOf } from '../job/validate-argument.ts'
import type { Runner } from '../postgres/store.ts'
import { type EventPage, eventPage } from './browse.ts'
import type { LogEvent } from './event.ts'
import type { BrowseFilter } from './log.sql.ts'
import { wantedTypes } from './subscribe.ts'
import { tail } from './tail.ts'
import type { Wakeups } from './wakeups.ts'

/** Options of a watch. */
export interface WatchOptions {
  /** Event types to watch: `'job.*'`, `'job.failed'`, or a list. Default: all. */
  types?: string | readonly string[]
  /** Only events of this tenant. */
  tenant?: string
  /** Only events of this job. */
  job?: string
  /** Whether to include events of fan-out items. Default: only if `job` names one. */
  items?: boolean
  /** Start after this position in the log. */
  after?: number
  /** Start this many events back. Default: 0, only new events. */
  back?: number
  /** Whether to keep watching for new events. Default: true. */
  follow?: boolean
  /** Ends the watch when it fires. */
  signal?: AbortSignal
  /** If the watch falls further behind than this many positions, it skips ahead. */
  mostBehind?: number
  /** Called with the number of skipped positions. */
  onSkipped?: (count: number) => void
  /** How often to poll; only groups get wake-ups. Default: every second. */
  pollMs?: number
}

/** Options of a page of the log. */
export interface EventPageOptions extends Pick<WatchOptions, 'types' | 'tenant' | 'job' | 'items'> {
  /** Start after this position in the log: `next` of the previous page. Default: the beginning. */
  after?: number
  /** Maximum number of events, at most 1000. Default: 100. */
  limit?: number
}

/** Watches events without a group. */
export function watch(store: Runner, wakeups: Wakeups, options: WatchOptions): AsyncGenerator<LogEvent> {
  mustBeObject('options of watch', options)
  const { after, back = 0 } = options
  return tail(store, wakeups, {
    ...filterOf(options),
    after: after === undefined ? null : placeOf('after', after),
    back: placeOf('back', back),
    follows: options.follow ?? true,
    signal: options.signal ?? new AbortController().signal,
    mostBehind: options.mostBehind ?? Number.POSITIVE_INFINITY,
    onSkipped: options.onSkipped ?? (() => {}),
    pollMs: options.pollMs ?? 1_000,
  })
}

/** Returns a page of the log, oldest first. */
export async function pageOf(store: Runner, options: EventPageOptions): Promise<EventPage> {
  mustBeObject('options of page', options)
  const { after = 0, limit = 100 } = options
  return eventPage(store, filterOf(options), { after: placeOf('after', after), limit: limitOf(limit, 1000) })
}

function filterOf({ types, tenant, job, items = false }: EventPageOptions): BrowseFilter {
  return {
    types: wantedTypes(types),
    tenant: textOf('tenant', tenant),
    jobId: job === undefined ? null : idOf(job),
    items: flagOf('items', items),
  }
}
