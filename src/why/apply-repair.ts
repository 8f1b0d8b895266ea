import { closeUnowned, compareOwned } from '../barrier/heal.sql.ts'
import { expireBarriers, joinDrained, recountBarriers, requeueWaiting } from '../fan-out/heal.sql.ts'
import type { JobId } from '../job/id.ts'
import { isFinal } from '../job/machine.ts'
import type { Store } from '../postgres/store.ts'
import { findOrphan } from '../reaper/revive.sql.ts'
import { moveOn } from '../reaper/revive.ts'
import { endDeadSessions } from '../reaper/session.sql.ts'
import { stopBarriers } from '../settle/fan-out.sql.ts'
import { dueParked } from '../settle/park.sql.ts'
import { unpark } from '../settle/park.ts'
import { redoJobs } from '../submit/redo.sql.ts'
import { listDeliveries, replayDelivery } from '../webhooks/deliveries.sql.ts'
import type { BarrierFacts, Facts } from './facts.ts'
import { announceRepair, resumeQueue, wakeFor } from './repair.sql.ts'
import type { RepairName } from './repair.ts'

/** What a repair needs: the job, its tenant, and the facts that it was chosen by. */
export interface Broken {
  readonly id: JobId
  readonly tenant: string | null
  /** Who asked for the repair, for the log. */
  readonly by?: string | null
  readonly facts: Facts
}

type MakeRepair = (store: Store, broken: Broken) => Promise<number>

/** How each repair is made, with statements of the leader or of a client. Returns how many rows it moved: the statement itself checks whether the move is still legal. */
const repairsBy: Record<RepairName, MakeRepair> = {
  async revive(store, { id, facts }) {
    const session = facts.session?.id
    if (session !== undefined)
      await store.run(endDeadSessions, { limit: 1, only: [session], steadyMs: Number.POSITIVE_INFINITY, watchedMs: 0 })
    const { revived, quarantined, failed } = await moveOn(store, await store.run(findOrphan, { id }))
    if (failed[0]) throw failed[0].error
    return revived.length + quarantined.length
  },
  wake: async (store, { id }) => (await store.run(wakeFor, { id })).length,
  'resume-queue': async (store, { by, facts }) =>
    facts.queue.name === null
      ? 0
      : (await store.contend(resumeQueue, { name: facts.queue.name, by: by ?? null })).length,
  async 'stop-items'(store, { facts }) {
    const ids = barriersToStop(facts)
    const stopped = await store.contend(stopBarriers, { ids, reason: whyStopped(facts) })
    const left = stopped[0]?.skipped
    // what was locked the first time is free a moment later
    return stopped.length + (left ? (await store.contend(stopBarriers, { ids, reason: whyStopped(facts) })).length : 0)
  },
  join: async (store, { facts }) => each(openOf(facts), (only) => store.run(joinDrained, { limit: 1, only: [only] })),
  recount: async (store, { facts }) =>
    each(openOf(facts), async (only) => [
      ...(await store.run(recountBarriers, { quietMs: 0, limit: 1, only: [only] })).filter(({ drift }) => drift > 0),
      ...(await store.run(joinDrained, { limit: 1, only: [only] })),
    ]),
  expire: async (store, { facts }) =>
    each(openOf(facts), async (only) => {
      const late = await store.run(expireBarriers, { limit: 1, only: [only] })
      if (late[0]?.is_stopped)
        await store.contend(stopBarriers, { ids: [only], reason: 'The fan-out expired before this item had ended.' })
      return late
    }),
  requeue: async (store, { id }) => (await store.run(requeueWaiting, { limit: 1, only: [id] })).length,
  async 'settle-parked'(store, { id }) {
    const rows = await store.run(dueParked, { limit: 1, only: id })
    for (const row of rows) await unpark(store, row)
    return rows.length
  },
  redo: async (store, { id, tenant, by }) =>
    (await store.contend(redoJobs, { ids: [id], tenant, isFromStart: false, by: by ?? null })).length,
  async replay(store, { id, tenant, by }) {
    const which = { endpoint: null, job: id, tenant, state: 'dead', before: null, limit: 1000 }
    return each(
      (await store.run(listDeliveries, which)).map((dead) => dead.id),
      (dead) => store.contend(replayDelivery, { id: dead, tenant, by: by ?? null }),
    )
  },
  async compare(store, { facts }) {
    if (!facts.continues) return 0
    const compared = await store.run(compareOwned, { ids: [facts.continues.id] })
    return compared.filter(({ was, arrived, is_fired }) => is_fired || was !== arrived).length
  },
  close: async (store, { facts }) =>
    facts.continues ? (await store.run(closeUnowned, { ids: [facts.continues.id] })).length : 0,
}

/** Makes a repair. `nothing`: the problem no longer exists. */
export async function applyRepair(store: Store, repair: RepairName, broken: Broken): Promise<'repaired' | 'nothing'> {
  const { id, by = null, facts } = broken
  const tenant = facts.job?.tenant ?? facts.continues?.tenant ?? '*'
  await store.run(announceRepair, { id, tenant, repair, by })
  return (await repairsBy[repair](store, broken)) > 0 ? 'repaired' : 'nothing'
}

async function each(ids: readonly string[], act: (id: string) => Promise<unknown[]>): Promise<number> {
  let moved = 0
  for (const id of ids) moved += (await act(id)).length
  return moved
}

function openOf({ barriers }: Facts): string[] {
  return barriers.filter(isOpen).map(({ id }) => id)
}

function isOpen({ joinedAt }: BarrierFacts): boolean {
  return joinedAt === null
}

/** The barrier that an item belongs to, or those that a parent has opened. */
function barriersToStop({ job, itemOf, barriers }: Facts): string[] {
  if (itemOf && job && !isFinal(job.state) && (!itemOf.isThere || itemOf.joinedAt === null)) {
    const isOrphaned =
      !itemOf.isThere || itemOf.stoppedAt !== null || itemOf.parentState === null || isFinal(itemOf.parentState)
    if (isOrphaned) return [itemOf.barrierId]
  }
  return barriers.filter((barrier) => isOpen(barrier) && barrier.hasLive).map(({ id }) => id)
}

function whyStopped({ job, itemOf, barriers }: Facts): string {
  if (itemOf && !itemOf.isThere) return 'The fan-out that this item belongs to is gone.'
  const own = itemOf?.stoppedAt ?? barriers.find(isOpen)?.stoppedAt
  if (own && !(job && isFinal(job.state))) return 'The fan-out of this item was stopped.'
  return 'The job that this item belongs to has ended.'
}
