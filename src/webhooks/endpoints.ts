import { uuidv7 } from 'uuidv7'
import { dayMs } from '../errors/duration.ts'
import { HoldfastError } from '../errors/errors.ts'
import { isName, nameForm } from '../job/names.ts'
import type { Actor, TenantScope } from '../job/scope.ts'
import { flagOf, limitOf, mustBeObject, refuse, textOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import type { Deliverer } from './deliverer.ts'
import { endpointId, notFound } from './deliveries.ts'
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
} from './endpoint.sql.ts'
import { checkHeaders } from './headers.ts'
import { switchedOff } from './plan.sql.ts'
import { checkSecret, freshSecret, seal } from './secret.ts'
import { checkWebhookUrl } from './target.ts'
import { checkTypes, checkWebhook, type GivenWebhook } from './webhook.ts'
import type { Webhooks } from './webhooks.ts'

/** An endpoint to create. */
export interface NewEndpoint extends GivenWebhook {
  /** The tenant whose events it receives. Default: `default`. */
  tenant?: string
  /** Whether it also receives events of fan-out items. Default: no. */
  items?: boolean
  /** A note for humans. */
  note?: string
}

/** A webhook endpoint. Its secret is returned only when it is created or rotated. */
export interface Endpoint {
  id: string
  tenant: string
  url: string
  types: string[]
  items: boolean
  headers: Record<string, string>
  note: string | null
  createdAt: Date
  /** When it was disabled, and why; null while it is enabled. */
  disabledAt: Date | null
  disabledWhy: string | null
  /** Since when every delivery has failed. */
  failingSince: Date | null
  /** Until when deliveries are also signed with the previous secret. */
  oldSecretUntil: Date | null
}

/** What endpoints need. */
export interface EndpointParts {
  store: Store
  /** How many endpoints a tenant may have. */
  most: number
  deliverer: Pick<Deliverer, 'rules' | 'open'>
}

type Endpoints = Pick<Webhooks, 'create' | 'list' | 'get' | 'update' | 'rotate' | 'enable' | 'disable' | 'remove'>

/** Makes the endpoints of an engine. */
export function makeEndpoints(parts: EndpointParts): Endpoints {
  const { store, deliverer } = parts
  const { rules } = deliverer
  return {
    create: (endpoint, actor) => create(parts, endpoint, actor),
    async list({ tenant, before, limit = 50 } = {}) {
      const page = {
        tenant: textOf('tenant', tenant),
        before: before === undefined ? null : endpointId(before),
        limit: limitOf(limit, 1000),
      }
      return (await store.run(listEndpoints, page)).map(endpointOf)
    },
    get: async (id, scope) => must(await store.run(getEndpoint, scopeOf(id, scope)), id),
    async update(id, changes, scope) {
      const params = { ...changeOf(parts, changes), ...actOf(id, scope) }
      return must(await store.contend(updateEndpoint, params), id)
    },
    async rotate(id, { graceMs = dayMs, secret, ...scope } = {}) {
      if (!Number.isFinite(graceMs) || graceMs < 0 || graceMs > 365 * dayMs)
        refuse('graceMs must be between 0 ms and one year', graceMs)
      const shown = secret === undefined ? freshSecret() : checkSecret(secret)
      const params = { ...actOf(id, scope), graceMs, secret: seal(shown, rules.key) }
      return { ...must(await store.contend(rotateSecret, params), id), secret: shown }
    },
    enable: async (id, scope) => must(await store.contend(enableEndpoint, actOf(id, scope)), id),
    async disable(id, { why, ...scope } = {}) {
      const reason = textOf('why', why) ?? 'Disabled manually.'
      return must(await store.contend(disableEndpoint, { ...actOf(id, scope), why: reason, error: switchedOff }), id)
    },
    async remove(id, scope) {
      const [gone] = await store.contend(removeEndpoint, { ...actOf(id, scope), error: 'The endpoint was removed.' })
      if (!gone) throw notFound(id)
    },
  }
}

async function create(
  { store, most, deliverer }: EndpointParts,
  endpoint: NewEndpoint,
  { by }: Actor = {},
): Promise<Endpoint & { secret: string }> {
  mustBeObject('endpoint', endpoint)
  const { tenant = 'default', items = false, note, ...webhook } = endpoint
  if (!isName(tenant)) refuse(`tenant must be ${nameForm}`, tenant)
  const { shown, url, types, headers, secret } = checkWebhook(deliverer.rules, webhook)
  const recorded = { note: textOf('note', note), by: textOf('by', by) }
  await deliverer.open()
  const wanted = { id: uuidv7(), tenant, url, types, items: flagOf('items', items), headers, secret, ...recorded }
  const [created] = await store.contendIn('endpoint.create', async (runner) => {
    await runner.run(lockEndpoints, { tenant })
    return runner.run(createEndpoint, { ...wanted, most })
  })
  if (!created) throw tooMany(tenant, most)
  return { ...endpointOf(created), secret: shown }
}

/** The new values, with null for those that stay, and the names of those that change. */
function changeOf({ deliverer }: EndpointParts, changes: Parameters<Webhooks['update']>[1]) {
  mustBeObject('changes of an endpoint', changes)
  const { url, types, items, headers, note } = changes
  const change = {
    url: url === undefined ? null : checkWebhookUrl(url, deliverer.rules.policy).href,
    types: types === undefined ? null : checkTypes(types),
    items: items === undefined ? null : flagOf('items', items),
    headers: headers === undefined ? null : JSON.stringify(checkHeaders(headers)),
    note: textOf('note', note),
  }
  return { ...change, changed: Object.entries(change).flatMap(([name, value]) => (value === null ? [] : [name])) }
}

function must(rows: EndpointRow[], id: string): Endpoint {
  const [row] = rows
  if (!row) throw notFound(id)
  return endpointOf(row)
}

function scopeOf(id: string, { tenant }: TenantScope = {}): EndpointScope {
  return { id: endpointId(id), tenant: textOf('tenant', tenant) }
}

/** An endpoint to act on, and who does it. */
export function actOf(id: string, { by, ...scope }: TenantScope & Actor = {}): EndpointAct {
  return { ...scopeOf(id, scope), by: textOf('by', by) }
}

function tooMany(tenant: string, most: number): HoldfastError {
  return new HoldfastError(
    'too_many_endpoints',
    `The tenant ${tenant} has ${most} webhook endpoints, which is the limit (setting webhookEndpoints). Remove one first.`,
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
