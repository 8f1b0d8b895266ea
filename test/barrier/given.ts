import { uuidv7 } from 'uuidv7'
import { addItems, type BarrierRow, type ItemBatch, openBarrier } from '#holdfast/fan-out/fan-out.sql'
import type { HeldFence } from '#holdfast/job/id'
import type { Runner, Store } from '#holdfast/postgres/store'
import { fanOutJobs } from '#holdfast/settle/fan-out.sql'
import { failJobs, finishJobs } from '#holdfast/settle/settle.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import type { Given, How, Running } from '../given.ts'

/** A fan-out, created with the statements that a worker uses. */
export interface FanOut {
  readonly parent: Running
  readonly barrier: BarrierRow
  readonly items: string[]
}

/** Options of a fan-out. */
export interface FanOutHow extends How {
  items?: number
  tolerate?: { count?: number; share?: number }
  expiresMs?: number
}

/** A parent that has added its items and has not sealed its barrier yet. */
export async function producing(parts: { given: Given; store: Store }, how: FanOutHow = {}): Promise<FanOut> {
  const { items: count = 2, tolerate = {}, expiresMs = null, ...job } = how
  const parent = await parts.given.running(job)
  const barrier = await openFor(parts.store, parent, { tolerate, expiresMs })
  const items = await add(parts.store, { parent, barrier }, count)
  return { parent, barrier, items }
}

/** A parent that waits for its items. */
export async function waiting(parts: { given: Given; store: Store }, how: FanOutHow = {}): Promise<FanOut> {
  const made = await producing(parts, how)
  await seal(parts.store, made)
  return made
}

/** Opens the barrier of a running attempt. */
export async function openFor(
  store: Runner,
  fence: HeldFence,
  how: { tolerate?: { count?: number; share?: number }; expiresMs?: number | null } = {},
): Promise<BarrierRow> {
  const { count = null, share = null } = how.tolerate ?? {}
  const [barrier] = await store.run(openBarrier, {
    fence,
    id: uuidv7(),
    count,
    share,
    expiresMs: how.expiresMs ?? null,
  })
  if (!barrier) throw new Error('The barrier was not opened: the attempt is lost.')
  return barrier
}

/** Adds items that run the `each` of the parent's own stage. */
export async function add(
  store: Runner,
  of: { parent: Running; barrier: BarrierRow },
  count: number,
): Promise<string[]> {
  const batch = batchOf(of, count)
  await store.run(addItems, batch)
  return batch.ids
}

/** A batch of items for a barrier. */
export function batchOf({ parent, barrier }: { parent: Running; barrier: BarrierRow }, count: number): ItemBatch {
  const numbers = Array.from({ length: count }, (_, n) => n)
  return {
    fence: parent,
    barrierId: barrier.id,
    kind: 'sample',
    queue: parent.queue,
    priority: 2,
    crashBudget: 3,
    stage: 0,
    isPart: true,
    ids: numbers.map(() => uuidv7()),
    inputs: numbers.map(String),
    keys: numbers.map(String),
    positions: numbers,
    limitKeys: numbers.map(() => null),
  }
}

/** Seals the barrier, so that its parent waits. */
export function seal(store: Runner, { parent }: Pick<FanOut, 'parent'>) {
  return store.run(fanOutJobs, { fences: [parent], errors: [null] })
}

/** Claims all queued items in one session. */
export async function claimItems({ given }: { given: Given }, { parent }: FanOut): Promise<Running[]> {
  const sessionId = await given.session()
  const rows = await given.claim({ sessionId, queue: parent.queue, most: 10_000 })
  return rows.map((row) => ({ ...heldFenceOf(row), queue: parent.queue }))
}

/** Finishes items, in one statement. */
export function finish(store: Runner, items: Running[]) {
  return store.run(finishJobs, {
    fences: items,
    outputs: items.map(() => '"done"'),
    stageNames: items.map(() => 'one'),
  })
}

/** Fails items, in one statement. */
export function fail(store: Runner, items: Running[]) {
  const error = JSON.stringify({ code: 'handler_failed', message: 'It broke.' })
  return store.run(failJobs, { fences: items, sessionId: items[0]?.sessionId ?? 0, errors: items.map(() => error) })
}
