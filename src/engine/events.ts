import { HoldfastError, messageOf } from '../errors/errors.ts'
import { type EventPage, eventPage } from '../events/browse.ts'
import type { EventHandler } from '../events/dispatch.ts'
import type { LogEvent } from '../events/event.ts'
import { openGroup } from '../events/group.sql.ts'
import { forgetGroup, listGroups, rewindGroup } from '../events/groups.sql.ts'
import { placeAtTime } from '../events/log.sql.ts'
import { listParked, replayParked } from '../events/parked.sql.ts'
import { makeSubscription } from '../events/subscription.ts'
import { tail } from '../events/tail.ts'
import { endOf, knownEndOf, makeTide } from '../events/tide.ts'
import { makeWakeups, type Wakeups } from '../events/wakeups.ts'
import { isName } from '../job/define.ts'
import { typesOf } from '../job/event-type.ts'
import type { Service } from '../service/service.ts'
import { webhookGroup } from '../webhooks/planner.ts'
import type { Actor } from './deliveries.ts'
import type { EngineParts } from './engine.ts'
import { eventNewsOf } from './event-news.ts'
import { flagOf, idOf, limitOf, mustBeObject, placeOf, textOf, timeOf } from './given.ts'
import { type Group, groupOf, type ParkedEvent, parkedOf } from './groups.ts'

/** How to read for a group. */
export interface SubscribeOptions {
  /** Which events: `'job.*'`, `'job.failed'`, several in a list. Default: all. The latest subscriber decides for its group. */
  types?: string | readonly string[]
  /** Whether also those of the items of fan-outs, of which there may be millions. Default false; the latest subscriber decides here, too. */
  items?: boolean
  /** Where a group that does not exist yet begins. Default: now. */
  from?: 'now' | 'beginning'
  /** How many readers may work at once; events of one job are always in one partition. Default 1, at most 64. Fixed once the group exists. */
  partitions?: number
  /** How long the handler may take with one event. Default 30 s. */
  timeoutMs?: number
  /** How often an event may fail before it is parked. Default 5. */
  failures?: number
  /** The wait after the first failure; it grows fourfold with each. Default 100 ms. */
  backoffMs?: number
}

/** Reading that goes on. */
export interface Subscription {
  /** Lets the handler finish what it has begun, and the rest to others. */
  stop(): Promise<void>
}

/** What to replay: parked events (one or all), or everything from a place in the log on. */
export type Replay = { parked: number | 'all' } | { from: 'beginning' | 'now' | Date | number }

/** What to look at. */
export interface WatchOptions {
  types?: string | readonly string[]
  tenant?: string
  job?: string
  /** Whether also those of the items of fan-outs. Default: only if `job` names one. */
  items?: boolean
  /** Begin behind this place in the log. */
  after?: number
  /** Begin so many events back. Default 0: only what comes. */
  back?: number
  /** Whether to go on with what comes. Default true. */
  follow?: boolean
  signal?: AbortSignal
  /** Behind by more places than this, the rest is passed over. */
  mostBehind?: number
  onSkipped?: (count: number) => void
  /** How often to look; only groups are woken. Default: each second. */
  pollMs?: number
}

/** Which page of the log. */
export interface EventPageOptions extends Pick<WatchOptions, 'types' | 'tenant' | 'job' | 'items'> {
  /** Begin behind this place in the log: `next` of the page before. Default: its beginning. */
  after?: number
  /** Default 100, at most 1000. */
  limit?: number
}

/** The log of changes. */
export interface Events {
  /** Reads for a group: durable, at least once, in order per job, each event by one process at a time. */
  subscribe(group: string, options: SubscribeOptions, handler: EventHandler): Promise<Subscription>
  groups(): Promise<Group[]>
  parked(group: string, options?: { after?: number; limit?: number }): Promise<ParkedEvent[]>
  /**
   * Has parked events handled once more, or sends the group to another place in the log. Answers how many events or partitions that were.
   * If `by` says who does it, it is an event.
   */
  replay(group: string, what: Replay, actor?: Actor): Promise<number>
  /** Forgets a group; the log is kept for it no more. If `by` says who does it, it is an event. */
  forget(group: string, actor?: Actor): Promise<void>
  /** The end of the log at this moment; safe if everything up to it is there or never will be. */
  end(): Promise<{ seq: number; isSafe: boolean }>
  /** A page of the log, oldest first. It looks at a bounded number of events, so it may be short although more comes: go on until `next` is null. */
  page(options?: EventPageOptions): Promise<EventPage>
  /** Looks on without a group: in order, from now or from a place in the log. */
  watch(options?: WatchOptions): AsyncGenerator<LogEvent>
}

/** Makes the wake-ups that all readers of an engine share. */
export function makeEngineWakeups({ url, config, log }: Pick<EngineParts, 'url' | 'config' | 'log'>): Wakeups {
  return makeWakeups({
    url,
    isPooled: config.pooled,
    onTrouble: (error) => log.debug({ reason: messageOf(error) }, 'wake-ups for events are lost; polling'),
  })
}

/** Makes the events of an engine. `begin` starts what the engine stops in the end. */
export function makeEvents(parts: EngineParts, begin: <S extends Service>(service: S) => Promise<S>): Events {
  const { store, config, wakeups } = parts

  async function subscribe(group: string, options: SubscribeOptions, handler: EventHandler): Promise<Subscription> {
    mustBeObject('options of subscribe', options)
    const { from = 'now', partitions = 1, timeoutMs = 30_000, failures = 5, backoffMs = 100 } = options
    if (typeof handler !== 'function') refuse('subscribe takes a handler: a function of one event.')
    if (from !== 'now' && from !== 'beginning')
      refuse(`from must be 'now' or 'beginning', not ${JSON.stringify(from)}.`)
    whole('partitions', partitions, 64)
    whole('timeoutMs', timeoutMs, 86_400_000)
    whole('failures', failures, 100)
    whole('backoffMs', backoffMs, 3_600_000)
    const name = ownNameOf(group)
    const seq = from === 'beginning' ? 0 : await endOf(makeTide(store))
    const items = flagOf('items', options.items ?? false)
    const [opened] = await store.run(openGroup, { group: name, types: given(options.types), items, partitions, seq })
    if (opened?.partitions !== partitions)
      throw new HoldfastError(
        'group_invalid',
        `The group ${name} has ${opened?.partitions} partitions, not ${partitions}, and that cannot change. Subscribe with ${opened?.partitions}, or forget the group first.`,
      )
    return begin(
      makeSubscription({
        store,
        wakeups,
        group: name,
        handler,
        timeoutMs,
        most: failures,
        backoff: { baseMs: backoffMs, maxMs: 30_000, factor: 4 },
        batchSize: 1_000,
        pollMs: config.pollMs,
        leaseMs: config.readerLeaseMs,
        beatMs: config.readerBeatMs,
        news: eventNewsOf(parts, name),
      }),
    )
  }

  async function startOf(from: 'beginning' | 'now' | Date | number): Promise<number> {
    if (from === 'beginning') return 0
    const end = await endOf(makeTide(store))
    if (from === 'now') return end
    if (typeof from === 'number' && Number.isSafeInteger(from) && from >= 0 && from <= end) return from
    if (!(from instanceof Date))
      refuse(`from must be 'beginning', 'now', a Date or a place in the log up to ${end}, not ${JSON.stringify(from)}.`)
    const [found] = await store.run(placeAtTime, { at: timeOf('from', from as Date), upTo: end })
    return found?.seq ?? end
  }

  /** Asked only after the write found nothing: before it, the answer may change. */
  async function mustExist(group: string): Promise<void> {
    if ((await store.run(listGroups, {})).some(({ name }) => name === group)) return
    throw new HoldfastError('group_not_found', `There is no group ${JSON.stringify(group)}.`)
  }

  return {
    subscribe,
    groups: async () => (await store.run(listGroups, {})).map(groupOf),
    async parked(group, { after = 0, limit = 100 } = {}) {
      placeOf('after', after)
      whole('limit', limit, 1000)
      const rows = await store.run(listParked, { group: nameOf(group), after, limit })
      if (rows.length === 0) await mustExist(group)
      return rows.map(parkedOf)
    },
    async replay(group, what, actor = {}) {
      mustBeObject('what to replay', what)
      const name = 'parked' in what ? nameOf(group) : ownNameOf(group)
      if ('parked' in what && what.parked !== 'all') placeOf('parked', what.parked)
      const by = textOf('by', actor.by)
      const touched =
        'parked' in what
          ? await store.run(replayParked, { group: name, seq: what.parked === 'all' ? null : what.parked, by })
          : await store.run(rewindGroup, { group: name, seq: await startOf(what.from), by })
      if (touched.length === 0) await mustExist(name)
      return touched.length
    },
    async forget(group, actor = {}) {
      const gone = await store.run(forgetGroup, { group: ownNameOf(group), by: textOf('by', actor.by) })
      if (gone.length === 0) await mustExist(group)
    },
    end: () => knownEndOf(makeTide(store)),
    page: async (options = {}) => {
      mustBeObject('options of page', options)
      const { after = 0, limit = 100 } = options
      return eventPage(store, filterOf(options), { after: placeOf('after', after), limit: limitOf(limit, 1000) })
    },
    watch(options = {}) {
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
    },
  }
}

function filterOf({ types, tenant, job, items = false }: WatchOptions) {
  return {
    types: given(types),
    tenant: textOf('tenant', tenant),
    jobId: job === undefined ? null : idOf(job),
    items: flagOf('items', items),
  }
}

/** The types that were asked for; null for all. */
function given(types: string | readonly string[] | undefined): string[] | null {
  if (types === undefined || types === '*') return null
  const found = typesOf([types].flat())
  if ('types' in found) return found.types
  throw new HoldfastError(
    'event_type_unknown',
    `There is no event of type ${JSON.stringify(found.unknown)}; the reference lists all (docs/reference/events.md), and job.* means those of jobs.`,
  )
}

function nameOf(group: string): string {
  if (isName(group)) return group
  throw new HoldfastError(
    'group_invalid',
    `${JSON.stringify(group)} cannot be the name of a group: up to 100 letters, digits and any of _ . : -`,
  )
}

/** The name of a group that is not ours. */
function ownNameOf(group: string): string {
  if (group !== webhookGroup) return nameOf(group)
  throw new HoldfastError('group_invalid', `The group ${webhookGroup} is that of the webhooks; take another name.`)
}

function whole(option: string, value: number, max: number): void {
  if (!Number.isInteger(value) || value < 1 || value > max)
    refuse(`${option} must be a whole number from 1 to ${max}, not ${JSON.stringify(value)}.`)
}

function refuse(rule: string): never {
  throw new HoldfastError('option_invalid', `The option ${rule}`)
}
