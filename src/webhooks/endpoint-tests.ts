import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../errors/errors.ts'
import type { Store } from '../postgres/store.ts'
import type { Deliverer } from './deliverer.ts'
import { notFound } from './deliveries.ts'
import { type EndpointAct, endpointSecrets } from './endpoint.sql.ts'
import type { PostResult } from './post.ts'
import { requestOf } from './request.ts'

/** What testing needs. */
export interface EndpointTestParts {
  store: Store
  /** How many tests of a tenant may run at once. */
  mostPerTenant: number
  deliverer: Pick<Deliverer, 'lanes' | 'rules' | 'userAgent' | 'poster'>
}

/**
 * Sends samples to endpoints. A test is a request to a host of the tenant's choice like any delivery. So it counts towards what the tenant
 * may have in flight, and a tenant may run only a few at once.
 */
export class EndpointTests {
  readonly #parts: EndpointTestParts
  readonly #running = new Map<string, number>()

  constructor(parts: EndpointTestParts) {
    this.#parts = parts
  }

  async run(act: EndpointAct): Promise<PostResult> {
    const { store, deliverer } = this.#parts
    const [row] = await store.run(endpointSecrets, act)
    if (!row) throw notFound(act.id)
    const { tenant, url, headers } = row
    const secrets = [row.secret, row.old_secret].filter((secret) => secret !== null)
    const sending = { ...sampleOf(act.id, row), tenant, url, headers, secrets, trace: null }
    const { rules, userAgent } = deliverer
    const request = requestOf(sending, { key: rules.key, userAgent, atMs: row.now_ms })
    this.#checkRoom(tenant)
    this.#begin(tenant, act.id)
    let ms: number | null = null
    try {
      const result = await deliverer.poster().post(request)
      ms = result.ms
      return result
    } finally {
      this.#end(tenant, act.id, ms)
    }
  }

  #checkRoom(tenant: string): void {
    const { mostPerTenant: most, deliverer } = this.#parts
    if ((this.#running.get(tenant) ?? 0) >= most)
      throw busy(
        `The tenant ${tenant} already has ${most} webhook tests in progress, which is the limit (setting webhookTests)`,
      )
    if (!deliverer.lanes.hasRoom(tenant))
      throw busy(
        `The tenant ${tenant} has reached its limit of webhooks in flight in this process, and a test counts as one`,
      )
  }

  #begin(tenant: string, endpoint: string): void {
    this.#running.set(tenant, (this.#running.get(tenant) ?? 0) + 1)
    this.#parts.deliverer.lanes.begin(tenant, endpoint)
  }

  #end(tenant: string, endpoint: string, ms: number | null): void {
    const left = (this.#running.get(tenant) ?? 1) - 1
    if (left > 0) this.#running.set(tenant, left)
    else this.#running.delete(tenant)
    this.#parts.deliverer.lanes.end(tenant, endpoint, ms)
  }
}

function busy(sentence: string): HoldfastError {
  return new HoldfastError('webhooks_busy', `${sentence}. Try again in a few seconds.`)
}

function sampleOf(
  endpoint: string,
  { tenant, now_ms }: { tenant: string; now_ms: number },
): { id: string; body: string } {
  const id = `evt_test_${randomUUID().replaceAll('-', '')}`
  const body = JSON.stringify({
    specversion: '1.0',
    id,
    source: '/holdfast',
    type: 'webhook.test',
    subject: endpoint,
    time: new Date(now_ms).toISOString(),
    datacontenttype: 'application/json',
    data: { job: null, tenant, result: null, error: null, details: { message: 'This is a test.' } },
  })
  return { id, body }
}
