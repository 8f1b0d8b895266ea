import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { parseJobId } from '../job/id.ts'
import type { Store } from '../postgres/store.ts'
import { registerKinds } from '../worker/kind.sql.ts'
import { registrationOf, type StoredKind, storeKinds } from './kinds.ts'
import { introduceKinds, openRemote } from './remote.sql.ts'
import type { OpenedRemote, OpenRemote } from './remote.ts'
import { Turns } from './turns.ts'
import { textOf, wholeOf } from './validate.ts'

const largestPid = 2_147_483_647

/**
 * Makes what opens sessions of remote workers. Sessions of one tenant are opened one after the other, so that each sees what the previous one
 * registered: a tenant that opens many at once gets no more kinds, and no more connections of the pool, than any other.
 */
export function makeOpener({ store, config, version }: { store: Store; config: Config; version: string }) {
  const turns = new Turns()

  async function register(tenant: string | null, kinds: StoredKind[]): Promise<void> {
    const registration = { ...registrationOf(kinds), tenant: tenant ?? '' }
    if (tenant === null) return void (await store.run(registerKinds, registration))
    const most = config.kindsPerTenant
    const [told] = await store.contend(introduceKinds, { ...registration, most })
    if (told?.is_allowed) return
    throw new HoldfastError(
      'kinds_exhausted',
      `The tenant ${tenant} would exceed its limit of ${most} kinds (setting kindsPerTenant). Reuse names; kinds that no worker serves are removed eventually.`,
      { details: { most } },
    )
  }

  async function openNow(worker: OpenRemote): Promise<OpenedRemote> {
    const { kinds, deadlinesMs } = storeKinds(config, worker.kinds)
    const leaseMs = wholeOf('leaseMs', worker.leaseMs ?? config.leaseMs, { min: 500, max: 3_600_000 })
    const tenant = worker.tenant ?? null
    const owner = worker.owner ?? null
    const facts = {
      pid: wholeOf('pid', worker.pid ?? 0, { min: 0, max: largestPid }),
      host: textOf('host', worker.host ?? 'remote', 200),
      concurrency: wholeOf('concurrency', worker.concurrency ?? 1, { min: 1, max: 10_000 }),
    }
    await register(tenant, kinds)
    const most = config.sessionsPerTenant
    const [opened] = await store.run(openRemote, {
      ...facts,
      version,
      kinds: kinds.map(({ name }) => name),
      queues: kinds.map(({ queue }) => queue),
      leaseMs,
      remote: JSON.stringify({ leaseMs, kinds, deadlinesMs }),
      owner,
      keyId: owner === null ? null : parseJobId(owner),
      tenant,
      most,
    })
    if (opened?.is_key_refused)
      throw new HoldfastError('key_refused', 'The API key does not exist, was revoked or has expired.')
    if (!opened?.id)
      throw new HoldfastError(
        'sessions_exhausted',
        `The tenant ${tenant} has ${most} sessions open (setting sessionsPerTenant). Close some, or wait until their leases run out.`,
        { details: { most } },
      )
    return { id: opened.id, leaseMs, heartbeatMs: Math.floor(leaseMs / 3), leaseUntil: opened.lease_until as Date }
  }

  /** Opens a session. Throws option_invalid, kinds_exhausted, sessions_exhausted or key_refused. */
  return async function open(worker: OpenRemote): Promise<OpenedRemote> {
    if (worker.tenant == null) return openNow(worker)
    return turns.take(worker.tenant, () => openNow(worker))
  }
}
