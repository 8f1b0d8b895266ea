import { version } from '../config/version.ts'
import type { Service } from '../service/service.ts'
import { Deliverer, type DelivererObserver } from '../webhooks/deliverer.ts'
import { logError } from './log-error.ts'
import type { EngineParts } from './parts.ts'

/** Makes the deliverer of an engine. */
export function makeEngineDeliverer(parts: Omit<EngineParts, 'deliverer'>): Deliverer {
  const { store, wakeups, config } = parts
  return new Deliverer({ store, wakeups, config, userAgent: `holdfast/${version}`, observer: observerOf(parts) })
}

/** Runs webhooks with a service. They start and stop after it, so that its last events are still planned. */
export function withWebhooks(
  { config, deliverer }: Pick<EngineParts, 'config' | 'deliverer'>,
  service: Service & { readonly ended?: Promise<unknown> },
): Service {
  if (!config.webhooks) return service
  const share = deliverer.share()
  let stopping: Promise<void> | undefined
  return {
    async start() {
      await service.start()
      await share.start()
      void service.ended?.then(() => share.stop())
    },
    stop() {
      stopping ??= service.stop().then(() => share.stop())
      return stopping
    },
  }
}

function observerOf({ log, metrics }: Pick<EngineParts, 'log' | 'metrics'>): DelivererObserver {
  return {
    ended(outcome, delivery, error) {
      metrics.add('holdfast_deliveries_total', { outcome })
      const facts = { delivery: delivery.id, event: delivery.event_id, tries: delivery.tries }
      if (outcome === 'dead') log.error({ ...facts, reason: error }, 'could not deliver a webhook; it can be replayed')
      if (outcome === 'retry') log.warn({ ...facts, reason: error }, 'could not deliver a webhook; it will be retried')
    },
    refused: ({ id, tries }) =>
      log.warn({ delivery: id, tries }, 'a webhook took longer than its claim; another sender took over'),
    switchedOff(endpoint) {
      metrics.add('holdfast_endpoints_disabled_total')
      log.error({ ...endpoint }, 'disabled a webhook endpoint')
    },
    nameRefused: ({ host, sorts }) =>
      log.warn({ host, sorts }, 'did not send a webhook: its host resolves only to addresses that are not allowed'),
    oldest: (lateMs) => metrics.set('holdfast_oldest_delivery_seconds', lateMs / 1000),
    onError: (error) => logError(log, 'webhook sender', error),
  }
}
