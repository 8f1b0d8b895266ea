import type { Config } from '../config/config.ts'
import type { Wakeups } from '../events/wakeups.ts'
import type { Store } from '../postgres/store.ts'
import type { Service } from '../service/service.ts'
import type { PreparedWebhook, SubmitOptions } from '../submit/prepare.ts'
import { makeAddressPolicy } from './address.ts'
import { Lanes } from './lanes.ts'
import type { RefusedNameError } from './lookup.ts'
import { openWebhooks } from './planner.ts'
import { makePoster, type Poster } from './post.ts'
import { checkServers, makeResolver, systemSearch } from './resolver.ts'
import { parseSecretKey } from './secret.ts'
import { mostInFlight, type SenderObserver } from './sender.ts'
import { WebhookService } from './service.ts'
import { checkJobWebhook, type WebhookRules } from './webhook.ts'

/** What a deliverer needs. */
export interface DelivererParts {
  store: Store
  wakeups: Wakeups
  config: Config
  userAgent: string
  observer: DelivererObserver
}

/** What a deliverer reports. */
export interface DelivererObserver extends SenderObserver {
  /** A host resolves only to addresses that are not allowed. The result of the request does not say so. */
  nameRefused(error: RefusedNameError): void
}

/** Plans and sends webhooks for everything that runs in this process. */
export class Deliverer {
  readonly rules: WebhookRules
  readonly userAgent: string
  /** What is in flight in this process. */
  readonly lanes: Lanes
  readonly #parts: DelivererParts
  readonly #servers: readonly string[]
  readonly #users = new Set<object>()
  #opening: Promise<void> | undefined
  #poster: Poster | undefined
  #service: WebhookService | undefined
  #changing: Promise<unknown> = Promise.resolve()

  /** Throws if an allow-list entry, a name server or the secret key is malformed. */
  constructor(parts: DelivererParts) {
    const { config, userAgent } = parts
    this.#parts = parts
    this.userAgent = userAgent
    this.rules = {
      policy: makeAddressPolicy({ allow: [...config.webhookAllow] }),
      key: config.secretKey === undefined ? null : parseSecretKey(config.secretKey),
    }
    this.#servers = checkServers(config.webhookNameServers)
    this.lanes = new Lanes({ most: mostInFlight, mostPerTenant: config.webhookInFlight })
  }

  /** Resolves once everything that is written from then on will be planned. Asks the database only once: the group is never removed. */
  open(): Promise<void> {
    this.#opening ??= openWebhooks(this.#parts.store).then(
      () => this.#service?.wake(),
      (error) => {
        this.#opening = undefined
        throw error
      },
    )
    return this.#opening
  }

  /** The webhook of a job that is about to be submitted, checked and sealed. */
  async forJob({ webhook }: SubmitOptions): Promise<PreparedWebhook | null> {
    if (webhook === undefined) return null
    const { shown: _shown, ...checked } = checkJobWebhook(this.rules, webhook)
    await this.open()
    return checked
  }

  poster(): Poster {
    const { config, observer } = this.#parts
    this.#poster ??= makePoster({
      policy: this.rules.policy,
      timeoutMs: config.webhookTimeoutMs,
      resolver: makeResolver({
        servers: this.#servers,
        search: this.#servers.length > 0 ? [] : systemSearch(),
        lookupMs: config.webhookLookupMs,
        mostPerTenant: config.webhookLookups,
      }),
      onRefused: observer.nameRefused,
    })
    return this.#poster
  }

  /** A user of the deliverer. Webhooks are planned and sent while at least one user runs. */
  share(): Service {
    const user = {}
    return {
      start: () => {
        this.#users.add(user)
        return this.#inTurn(async () => this.#users.size > 0 && this.#running().start())
      },
      stop: () => {
        this.#users.delete(user)
        return this.#inTurn(async () => this.#users.size === 0 && this.#service?.stop())
      },
    }
  }

  async close(): Promise<void> {
    await this.#service?.stop()
    await this.#poster?.close()
  }

  /** One change after the other: a start during a stop must find the service stopped, not stopping. */
  #inTurn(change: () => Promise<unknown>): Promise<void> {
    this.#changing = this.#changing.catch(() => {}).then(change)
    return this.#changing.then(() => {})
  }

  #running(): WebhookService {
    const { store, wakeups, config, observer } = this.#parts
    this.#service ??= new WebhookService({
      store,
      wakeups,
      poster: this.poster(),
      lanes: this.lanes,
      key: this.rules.key,
      userAgent: this.userAgent,
      timeoutMs: config.webhookTimeoutMs,
      giveUpMs: config.webhookGiveUpMs,
      backoffBaseMs: config.webhookBackoffBaseMs,
      pollMs: config.pollMs,
      leaseMs: config.readerLeaseMs,
      beatMs: config.readerBeatMs,
      maxBytes: config.webhookMaxBytes,
      publicUrl: config.publicUrl?.replace(/\/+$/, '') ?? null,
      observer,
    })
    return this.#service
  }
}
