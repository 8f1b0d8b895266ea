import type { Config } from '../config/config.ts'
import type { Actor, TenantScope } from '../job/scope.ts'
import type { Store } from '../postgres/store.ts'
import type { Deliverer } from './deliverer.ts'
import { type Deliveries, makeDeliveries } from './deliveries.ts'
import { EndpointTests } from './endpoint-tests.ts'
import { actOf, type Endpoint, makeEndpoints, type NewEndpoint } from './endpoints.ts'
import type { PostResult } from './post.ts'

/** Webhook endpoints of tenants, and their deliveries. */
export interface Webhooks extends Deliveries {
  /** Creates an endpoint, which receives events from now on. The secret is returned only this once. */
  create(endpoint: NewEndpoint, actor?: Actor): Promise<Endpoint & { secret: string }>
  /** Lists endpoints, newest first. */
  list(options?: TenantScope & { before?: string; limit?: number }): Promise<Endpoint[]>
  /** Throws endpoint_not_found. */
  get(id: string, scope?: TenantScope): Promise<Endpoint>
  /** Changes an endpoint; omitted fields keep their values. Throws endpoint_not_found. */
  update(
    id: string,
    change: Partial<Pick<NewEndpoint, 'url' | 'types' | 'items' | 'headers' | 'note'>>,
    scope?: TenantScope & Actor,
  ): Promise<Endpoint>
  /** Rotates its secret. During the grace period (default: one day), deliveries are signed with both secrets. */
  rotate(
    id: string,
    options?: TenantScope & Actor & { graceMs?: number; secret?: string },
  ): Promise<Endpoint & { secret: string }>
  /** Enables a disabled endpoint. */
  enable(id: string, scope?: TenantScope & Actor): Promise<Endpoint>
  /** Disables an endpoint: its pending and future deliveries become dead letters. */
  disable(id: string, scope?: TenantScope & Actor & { why?: string }): Promise<Endpoint>
  /** Removes an endpoint. Its deliveries stay listed until their retention period expires. */
  remove(id: string, scope?: TenantScope & Actor): Promise<void>
  /** Sends one signed sample at once, and returns the result. It counts towards the limits of its tenant: throws webhooks_busy if they are reached. */
  test(id: string, scope?: TenantScope & Actor): Promise<PostResult>
}

/** Makes the webhooks of an engine. */
export function makeWebhooks({
  store,
  config,
  deliverer,
}: {
  store: Store
  config: Config
  deliverer: Deliverer
}): Webhooks {
  const tests = new EndpointTests({ store, deliverer, mostPerTenant: config.webhookTests })
  return {
    ...makeDeliveries(store),
    ...makeEndpoints({ store, deliverer, most: config.webhookEndpoints }),
    test: async (id, scope) => tests.run(actOf(id, scope)),
  }
}
