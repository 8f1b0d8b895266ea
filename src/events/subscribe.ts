import type { Config } from '../config/config.ts'
import { dayMs } from '../errors/duration.ts'
import { HoldfastError } from '../errors/errors.ts'
import { mustBeTypes } from '../job/event-type.ts'
import { flagOf, mustBeObject, refuse, wholeOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import type { Service } from '../service/service.ts'
import type { EventHandler } from './dispatch.ts'
import { openGroup } from './group.sql.ts'
import { endOf, makeHorizon } from './horizon.ts'
import { makeSubscription, type SubscriptionObserver } from './subscription.ts'
import type { Wakeups } from './wakeups.ts'

/** Options of a subscription. */
export interface SubscribeOptions {
  /** Event types to read: `'job.*'`, `'job.failed'`, or a list. Default: all. The latest subscriber decides for its group. */
  types?: string | readonly string[]
  /** Whether to include events of fan-out items, of which there may be millions; the latest subscriber decides. Default: false. */
  items?: boolean
  /** Where a new group starts. Default: now. */
  from?: 'now' | 'beginning'
  /** How many readers may work concurrently, at most 64; events of one job are always in one partition. Fixed once the group exists. Default: 1. */
  partitions?: number
  /** How long the handler may take for one event. Default: 30 s. */
  timeoutMs?: number
  /** How many times an event may fail before it is parked. Default: 5. */
  failures?: number
  /** The delay after the first failure; each further failure multiplies it by four. Default: 100 ms. */
  backoffMs?: number
}

/** A running subscription. */
export interface Subscription {
  /** Lets the handler finish its current event, and leaves the rest to other readers. */
  stop(): Promise<void>
}

/** What subscribing needs. */
export interface SubscribeParts {
  store: Store
  wakeups: Wakeups
  config: Pick<Config, 'pollMs' | 'readerLeaseMs' | 'readerBeatMs'>
  observerOf: (group: string) => SubscriptionObserver
}

/** Creates the group if it is missing, and makes a reader for it. */
export async function makeSubscriber(
  parts: SubscribeParts,
  group: string,
  options: SubscribeOptions,
  handler: EventHandler,
): Promise<Service> {
  const { store, wakeups, config, observerOf } = parts
  const { from, items, types, partitions, timeoutMs, failures, backoffMs } = checked(options, handler)
  const seq = from === 'beginning' ? 0 : await endOf(makeHorizon(store))
  const [opened] = await store.contend(openGroup, { group, types: wantedTypes(types), items, partitions, seq })
  if (opened?.partitions !== partitions)
    throw new HoldfastError(
      'group_invalid',
      `The group ${group} has ${opened?.partitions} partitions, not ${partitions}, and that cannot change. Subscribe with ${opened?.partitions}, or forget the group first.`,
    )
  return makeSubscription({
    store,
    wakeups,
    group,
    handler,
    timeoutMs,
    most: failures,
    backoff: { baseMs: backoffMs, maxMs: 30_000, factor: 4 },
    batchSize: 1_000,
    pollMs: config.pollMs,
    leaseMs: config.readerLeaseMs,
    beatMs: config.readerBeatMs,
    observer: observerOf(group),
  })
}

function checked(options: SubscribeOptions, handler: EventHandler) {
  mustBeObject('options of subscribe', options)
  const { from = 'now', partitions = 1, timeoutMs = 30_000, failures = 5, backoffMs = 100, items = false } = options
  if (typeof handler !== 'function')
    throw new HoldfastError('option_invalid', 'subscribe takes a handler: a function that receives one event.')
  if (from !== 'now' && from !== 'beginning') refuse("from must be 'now' or 'beginning'", from)
  wholeOf('partitions', partitions, 64)
  wholeOf('timeoutMs', timeoutMs, dayMs)
  wholeOf('failures', failures, 100)
  wholeOf('backoffMs', backoffMs, 3_600_000)
  return { from, partitions, timeoutMs, failures, backoffMs, items: flagOf('items', items), types: options.types }
}

/** The event types to read; null for all. */
export function wantedTypes(types: string | readonly string[] | undefined): string[] | null {
  return types === undefined || types === '*' ? null : mustBeTypes(types)
}
