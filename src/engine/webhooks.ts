import { uuidv7 } from 'uuidv7'
import { HoldfastError } from '../errors/errors.ts'
import { isName } from '../job/define.ts'
import {
  createEndpoint,
  disableEndpoint,
  type EndpointAct,
  type EndpointRow,
  type EndpointScope,
  enableEndpoint,
  getEndpoint,
  listEndpoints,
  lockEndpoints,
  removeEndpoint,
  rotateSecret,
  updateEndpoint,
} from '../webhooks/endpoint.sql.ts'
import { checkHeaders } from '../webhooks/headers.ts'
import { switchedOff } from '../webhooks/plan.sql.ts'
import type { PostResult } from '../webhooks/post.ts'
import { checkSecret, freshSecret, seal } from '../webhooks/secret.ts'
import { checkWebhookUrl } from '../webhooks/target.ts'
import { checkTypes, checkWebhook, type GivenWebhook } from '../webhooks/webhook.ts'
import {
  type Actor,
  type Deliveries,
  endpointId,
  limitOf,
  makeDeliveries,
  notFound,
  refuse,
  type TenantScope,
} from './deliveries.ts'
import type { EngineParts } from './engine.ts'
import { flagOf, mustBeObject, textOf } from './given.ts'
import { makeTester } from './webhook-test.ts'

/** An endpoint to create. */
export interface NewEndpoint extends GivenWebhook {
  /** Whose events it gets. Default: `default`. */
  tenant?: string
  /** Whether it gets the events of the items of fan-outs, too. Default: no. */
  items?: boolean
  /** For people. */
  note?: string
}

/** A webhook endpoint. Its secret is shown when it is created or rotated, and never again. */
export interface Endpoint {
  id: string
  tenant: string
  url: string
  types: string[]
  items: boolean
  headers: Record<string, string>
  note: string | null
  createdAt: Date
  /** Since when it is switched off, and why; null while it is on. */
  disabledAt: Date | null
  disabledWhy: string | null
  /** Since when nothing has succeeded, although something was tried. */
  failingSince: Date | null
  /** Until when signatures are made with the secret before, too. */
  oldSecretUntil: Date | null
}

/** Webhooks: endpoints of tenants, and what is sent to them. */
export interface Webhooks extends Deliveries {
  /** Creates an endpoint. It gets what happens from here on. The secret is shown this once. */
  create(endpoint: NewEndpoint, actor?: Actor): Promise<Endpoint & { secret: string }>
  list(options?: TenantScope & { before?: string; limit?: number }): Promise<Endpoint[]>
  /** Throws endpoint_not_found. */
  get(id: string, scope?: TenantScope): Promise<Endpoint>
  update(
    id: string,
    change: Partial<Pick<NewEndpoint, 'url' | 'types' | 'items' | 'headers' | 'note'>>,
    scope?: TenantScope & Actor,
  ): Promise<Endpoint>
  /** Gives it another secret. For the time of grace (default: a day), deliveries are signed with both. */
  rotate(
    id: string,
    options?: TenantScope & Actor & { graceMs?: number; secret?: string },
  ): Promise<Endpoint & { secret: string }>
  enable(id: string, scope?: TenantScope & Actor): Promise<Endpoint>
  /** Switches it off: what waits for it, and what comes, becomes dead letters. */
  disable(id: string, scope?: TenantScope & Actor & { why?: string }): Promise<Endpoint>
  /** Removes it. Its deliveries stay listed until they are old. */
  remove(id: string, scope?: TenantScope & Actor): Promise<void>
  /**
   * Sends a signed sample at once, once, and says what came of it. Counts towards the limits of its tenant: throws
   * webhooks_busy while too many are under way.
   */
  test(id: string, scope?: TenantScope & Actor): Promise<PostResult>
}

const day = 86_400_000
/** Makes the webhooks of an engine. */
export function makeWebhooks({ store, config, deliverer }: EngineParts): Webhooks {
  const { rules } = deliverer
  const test = makeTester({ store, config, deliverer })
  return {
    ...makeDeliveries(store),
    async create(endpoint, { by } = {}) {
      mustBeObject('endpoint', endpoint)
      const { tenant = 'default', items = false, note, ...webhook } = endpoint
      if (!isName(tenant))
        refuse(`tenant must be up to 100 letters, digits and any of _ . : -, not ${JSON.stringify(tenant)}.`)
      const { shown, url, types, headers, secret } = checkWebhook(rules, webhook)
      const recorded = { note: textOf('note', note), by: textOf('by', by) }
      await deliverer.opened()
      const most = config.webhookEndpoints
      const wanted = { id: uuidv7(), tenant, url, types, items: flagOf('items', items), headers, secret, ...recorded }
      const [created] = await store.transaction(async (runner) => {
        await runner.run(lockEndpoints, { tenant })
        return runner.run(createEndpoint, { ...wanted, most })
      })
      if (!created) throw tooMany(tenant, most)
      return { ...endpointOf(created), secret: shown }
    },
    async list({ tenant, before, limit = 50 } = {}) {
      const page = {
        tenant: textOf('tenant', tenant),
        before: before === undefined ? null : endpointId(before),
        limit: limitOf(limit),
      }
      return (await store.run(listEndpoints, page)).map(endpointOf)
    },
    get: async (id, scope) => must(await store.run(getEndpoint, scopeOf(id, scope)), id),
    async update(id, changes, scope) {
      mustBeObject('changes of an endpoint', changes)
      const { url, types, items, headers, note } = changes
      const change = {
        url: url === undefined ? null : checkWebhookUrl(url, rules.policy).href,
        types: types === undefined ? null : checkTypes(types),
        items: items === undefined ? null : flagOf('items', items),
        headers: headers === undefined ? null : JSON.stringify(checkHeaders(headers)),
        note: textOf('note', note),
      }
      const changed = Object.entries(change).flatMap(([name, value]) => (value === null ? [] : [name]))
      return must(await store.run(updateEndpoint, { ...actOf(id, scope), ...change, changed }), id)
    },
    async rotate(id, { graceMs = day, secret, ...scope } = {}) {
      if (!Number.isFinite(graceMs) || graceMs < 0 || graceMs > 365 * day)
        refuse(`graceMs must be milliseconds from 0 to a year, not ${JSON.stringify(graceMs)}.`)
      const shown = secret === undefined ? freshSecret() : checkSecret(secret)
      const params = { ...actOf(id, scope), graceMs, secret: seal(shown, rules.key) }
      return { ...must(await store.run(rotateSecret, params), id), secret: shown }
    },
    enable: async (id, scope) => must(await store.run(enableEndpoint, actOf(id, scope)), id),
    async disable(id, { why, ...scope } = {}) {
      const params = {
        ...actOf(id, scope),
        why: textOf('why', why) ?? 'Somebody switched it off.',
        error: switchedOff,
      }
      return must(await store.run(disableEndpoint, params), id)
    },
    async remove(id, scope) {
      const [gone] = await store.run(removeEndpoint, { ...actOf(id, scope), error: 'The endpoint was removed.' })
      if (!gone) throw notFound(id)
    },
    test: (id, scope) => test(actOf(id, scope)),
  }
}

function must(rows: EndpointRow[], id: string): Endpoint {
  const [row] = rows
  if (!row) throw notFound(id)
  return endpointOf(row)
}

function scopeOf(id: string, { tenant }: TenantScope = {}): EndpointScope {
  return { id: endpointId(id), tenant: textOf('tenant', tenant) }
}

function actOf(id: string, { by, ...scope }: TenantScope & Actor = {}): EndpointAct {
  return { ...scopeOf(id, scope), by: textOf('by', by) }
}

function tooMany(tenant: string, most: number): HoldfastError {
  return new HoldfastError(
    'too_many_endpoints',
    `The tenant ${tenant} has ${most} webhook endpoints, which is all it may have (setting webhookEndpoints). Remove one first.`,
  )
}

function endpointOf(row: EndpointRow): Endpoint {
  const { created_at, disabled_at, disabled_why, failing_since, old_secret_until, ...same } = row
  return {
    ...same,
    createdAt: created_at,
    disabledAt: disabled_at,
    disabledWhy: disabled_why,
    failingSince: failing_since,
    oldSecretUntil: old_secret_until,
  }
}
