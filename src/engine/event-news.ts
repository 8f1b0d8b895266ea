import type { SubscriptionNews } from '../events/subscription.ts'
import { oldestWriter } from '../events/tide.sql.ts'
import type { EngineParts } from './engine.ts'
import { tellTrouble } from './trouble.ts'

/** Logs and counts what happens to a group of readers. */
export function eventNewsOf({ store, log, metrics }: EngineParts, group: string): SubscriptionNews {
  async function tellHeldBack(forMs: number): Promise<void> {
    const [writer] = await store.run(oldestWriter, {})
    const who = writer && { pid: writer.pid, application: writer.application, prepared: writer.name }
    log.warn(
      { group, forMs: Math.round(forMs), ...who },
      'a transaction has been writing for long; events behind it must wait until it ends',
    )
  }

  return {
    handled: (count) => metrics.add('holdfast_events_handled_total', { group }, count),
    failed: (seq, failures, error) =>
      log.warn({ group, seq, failures, reason: error }, 'an event could not be handled'),
    parked(seq, error) {
      metrics.add('holdfast_events_parked_total', { group })
      log.error({ group, seq, reason: error }, 'an event was parked; the group goes on without it')
    },
    heldBack: (forMs) => void tellHeldBack(forMs).catch(() => {}),
    trouble: (error) => tellTrouble(log, 'event reader', error, { group }),
  }
}
