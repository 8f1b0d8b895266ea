import { messageOf } from '../errors/errors.ts'
import { type Events, makeEvents } from '../events/events.ts'
import { oldestWriter } from '../events/horizon.sql.ts'
import type { SubscriptionObserver } from '../events/subscription.ts'
import { makeWakeups, type Wakeups } from '../events/wakeups.ts'
import { logError } from './log-error.ts'
import type { EngineParts } from './parts.ts'
import type { Running } from './running.ts'

/** Makes the wake-ups that all readers of an engine share. */
export function makeEngineWakeups({ url, config, log }: Pick<EngineParts, 'url' | 'config' | 'log'>): Wakeups {
  return makeWakeups({
    url,
    isPooled: config.pooled,
    onError: (error) => log.debug({ reason: messageOf(error) }, 'lost wake-ups for events; polling'),
  })
}

/** Makes the events of an engine. */
export function makeEngineEvents(parts: EngineParts, running: Running): Events {
  const { store, config, wakeups } = parts
  return makeEvents({
    store,
    config,
    wakeups,
    observerOf: (group) => groupObserver(parts, group),
    begin: (service) => running.begin(service),
  })
}

/** Logs and counts what a group does. */
function groupObserver({ store, log, metrics }: EngineParts, group: string): SubscriptionObserver {
  async function tellHeldBack(forMs: number): Promise<void> {
    const [writer] = await store.run(oldestWriter, {})
    log.warn(
      { group, forMs: Math.round(forMs), ...writer },
      'a long-running transaction holds back later events until it ends',
    )
  }

  return {
    handled: (count) => metrics.add('holdfast_events_handled_total', { group }, count),
    failed: (seq, failures, error) => log.warn({ group, seq, failures, reason: error }, 'could not handle an event'),
    parked(seq, error) {
      metrics.add('holdfast_events_parked_total', { group })
      log.error({ group, seq, reason: error }, 'parked an event; the group continues without it')
    },
    heldBack: (forMs) => void tellHeldBack(forMs).catch(() => {}),
    onError: (error) => logError(log, 'event reader', error, { group }),
  }
}
