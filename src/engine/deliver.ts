import type { Wakeups } from '../events/wakeups.ts'
import type { Service } from '../service/service.ts'
import type { PreparedWebhook, SubmitOptions } from '../submit/prepare.ts'
import { makeAddressPolicy } from '../webhooks/address.ts'
import { Lanes } from '../webhooks/lanes.ts'
import { openWebhooks } from '../webhooks/planner.ts'
import { makePoster, type Poster } from '../webhooks/post.ts'
import { checkServers, makeResolver, systemSearch } from '../webhooks/resolver.ts'
import { parseSecretKey } from '../webhooks/secret.ts'
import { mostInFlight, type SenderNews } from '../webhooks/sender.ts'
import { checkJobWebhook, type WebhookRules } from '../webhooks/webhook.ts'
import { makeWebhookService, type WebhookService } from '../webhooks/webhooks.ts'
import type { EngineParts } from './engine.ts'
import { tellTrouble } from './trouble.ts'
import { version } from './work.ts'

/** Planning and sending, shared by whatever runs in this process. */
export interface Deliverer {
  readonly rules: WebhookRules
  readonly userAgent: string
  /** Resolves when whatever is written from here on will be planned. */
  opened(): Promise<void>
  /** The webhook of a job that is about to be submitted, checked and sealed. */
  forJob(options: SubmitOptions): Promise<PreparedWebhook | null>
  poster(): Poster
  /** What is in flight in this process. */
  readonly lanes: Lanes
  /** Runs as long as one of those that asked for it runs. */
  share(): Service
  close(): Promise<void>
}

/** Makes the deliverer of an engine. A malformed allow-list, name server or secret key is refused here. */
export function makeDeliverer(parts: Omit<EngineParts, 'deliverer'>, wakeups: Wakeups): Deliverer {
  const { store, config } = parts
  const rules: WebhookRules = {
    policy: makeAddressPolicy({ allow: [...config.webhookAllow] }),
    key: config.secretKey === undefined ? null : parseSecretKey(config.secretKey),
  }
  const servers = checkServers(config.webhookNameServers)
  const lanes = new Lanes({ most: mostInFlight, mostPerTenant: config.webhookInFlight })
  const userAgent = `holdfast/${version}`
  const users = new Set<object>()
  let opening: Promise<void> | undefined
  let made: Poster | undefined
  let service: WebhookService | undefined
  let changing: Promise<unknown> = Promise.resolve()

  function poster(): Poster {
    made ??= makePoster({
      policy: rules.policy,
      timeoutMs: config.webhookTimeoutMs,
      resolver: makeResolver({
        servers,
        search: servers.length > 0 ? [] : systemSearch(),
        lookupMs: config.webhookLookupMs,
        mostPerTenant: config.webhookLookups,
      }),
      onRefused: ({ host, sorts }) =>
        parts.log.warn(
          { host, sorts },
          'a webhook was not sent: its host leads only to addresses that are not allowed',
        ),
    })
    return made
  }

  /** Asked of the database once: the group is never forgotten. */
  function opened(): Promise<void> {
    opening ??= openWebhooks(store).then(
      () => service?.wake(),
      (error) => {
        opening = undefined
        throw error
      },
    )
    return opening
  }

  /** One after the other: whoever starts it while another stops it must find it stopped, not stopping. */
  function inTurn(change: () => Promise<unknown>): Promise<void> {
    changing = changing.catch(() => {}).then(change)
    return changing.then(() => {})
  }

  function running(): WebhookService {
    service ??= makeWebhookService({
      store,
      wakeups,
      poster: poster(),
      lanes,
      key: rules.key,
      userAgent,
      timeoutMs: config.webhookTimeoutMs,
      giveUpMs: config.webhookGiveUpMs,
      backoffBaseMs: config.webhookBackoffBaseMs,
      pollMs: config.pollMs,
      leaseMs: config.readerLeaseMs,
      beatMs: config.readerBeatMs,
      maxBytes: config.webhookMaxBytes,
      publicUrl: config.publicUrl?.replace(/\/+$/, '') ?? null,
      news: newsOf(parts),
    })
    return service
  }

  return {
    rules,
    userAgent,
    poster,
    lanes,
    opened,
    async forJob({ webhook }) {
      if (webhook === undefined) return null
      const { shown: _shown, ...checked } = checkJobWebhook(rules, webhook)
      await opened()
      return checked
    },
    share() {
      const user = {}
      return {
        start() {
          users.add(user)
          return inTurn(async () => users.size > 0 && running().start())
        },
        stop() {
          users.delete(user)
          return inTurn(async () => users.size === 0 && service?.stop())
        },
      }
    },
    async close() {
      await service?.stop()
      await made?.close()
    },
  }
}

/** Runs webhooks beside something: they begin after it and end after it, so that its last events are still planned. */
export function alongside<S extends Service & { ended?: Promise<unknown> }>(
  main: S,
  deliverer: Deliverer,
  isWanted: boolean,
): S {
  if (!isWanted) return main
  const share = deliverer.share()
  let stopping: Promise<void> | undefined
  return {
    ...main,
    async start() {
      await main.start()
      await share.start()
      void main.ended?.then(() => share.stop())
    },
    stop() {
      stopping ??= main.stop().then(() => share.stop())
      return stopping
    },
  }
}

function newsOf({ log, metrics }: Omit<EngineParts, 'deliverer'>): SenderNews {
  return {
    ended(outcome, delivery, error) {
      metrics.add('holdfast_deliveries_total', { outcome })
      const facts = { delivery: delivery.id, event: delivery.event_id, tries: delivery.tries }
      if (outcome === 'dead')
        log.error({ ...facts, reason: error }, 'a webhook could not be delivered; it can be replayed')
      if (outcome === 'retry') log.warn({ ...facts, reason: error }, 'a webhook could not be delivered yet')
    },
    refused: ({ id, tries }) =>
      log.warn({ delivery: id, tries }, 'a webhook took longer than its claim; another sender has it'),
    switchedOff(endpoint) {
      metrics.add('holdfast_endpoints_disabled_total')
      log.error({ ...endpoint }, 'a webhook endpoint was switched off')
    },
    oldest: (lateMs) => metrics.set('holdfast_oldest_delivery_seconds', lateMs / 1000),
    trouble: (error) => tellTrouble(log, 'webhook sender', error),
  }
}
