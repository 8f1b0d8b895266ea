import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../errors/errors.ts'
import { type EndpointAct, endpointSecrets } from '../webhooks/endpoint.sql.ts'
import type { PostResult } from '../webhooks/post.ts'
import { requestOf } from '../webhooks/request.ts'
import { notFound } from './deliveries.ts'
import type { EngineParts } from './engine.ts'

/** Sends a sample to an endpoint. */
type Tester = (act: EndpointAct) => Promise<PostResult>

/**
 * Makes what sends samples. A test is a request to a host of the tenant's choice like any delivery, so it takes room
 * among what the tenant has in flight, and a tenant runs only a few at once.
 */
export function makeTester({ store, config, deliverer }: Pick<EngineParts, 'store' | 'config' | 'deliverer'>): Tester {
  const { lanes, rules, userAgent } = deliverer
  const underWay = new Map<string, number>()

  function checkRoom(tenant: string): void {
    const most = config.webhookTests
    if ((underWay.get(tenant) ?? 0) >= most)
      throw busy(`The tenant ${tenant} has ${most} webhook tests under way, which is all it may have at once`)
    if (!lanes.hasRoom(tenant))
      throw busy(`The tenant ${tenant} has as many webhooks in flight here as it may have, and a test is one more`)
  }

  function begin(tenant: string, endpoint: string): void {
    underWay.set(tenant, (underWay.get(tenant) ?? 0) + 1)
    lanes.begin(tenant, endpoint)
  }

  function end(tenant: string, endpoint: string, ms: number | null): void {
    const left = (underWay.get(tenant) ?? 1) - 1
    if (left > 0) underWay.set(tenant, left)
    else underWay.delete(tenant)
    lanes.end(tenant, endpoint, ms)
  }

  return async (act) => {
    const [row] = await store.run(endpointSecrets, act)
    if (!row) throw notFound(act.id)
    const { tenant, url, headers } = row
    const secrets = [row.secret, row.old_secret].filter((secret) => secret !== null)
    const sending = { ...sampleOf(act.id, row), tenant, url, headers, secrets, trace: null }
    const request = requestOf(sending, { key: rules.key, userAgent, atMs: row.now_ms })
    checkRoom(tenant)
    begin(tenant, act.id)
    let ms: number | null = null
    try {
      const result = await deliverer.poster().post(request)
      ms = result.ms
      return result
    } finally {
      end(tenant, act.id, ms)
    }
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
