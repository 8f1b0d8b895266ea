import { createHash } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob, AnyStage, StageContext } from '../job/define.ts'
import type { Items } from '../job/fan-out.ts'
import type { HeldFence, JobId } from '../job/id.ts'
import { limitKeyOf } from '../job/limit.ts'
import type { Flow } from '../job/middleware.ts'
import { encodeStorable } from '../job/storable.ts'
import type { Store } from '../postgres/store.ts'
import { addItems, type BarrierRow, type ItemBatch } from './fan-out.sql.ts'

/** The attempt that fans out. */
export interface Producer {
  readonly fence: HeldFence
  readonly job: AnyJob
  readonly stage: AnyStage
  readonly row: { readonly stage: number; readonly priority: number }
}

/** A batch is stored when it has that many bytes, or that long after its first item, however few there are. */
const mostBytes = 4_194_304
const lingerMs = 100

/** How a producer ended: it returned all items, or threw after some. `lost`: the attempt is no longer ours. */
export type Produced = 'all' | 'lost' | { thrown: unknown }

/**
 * Asks the stage for its items and stores them, batch by batch. An item's id is derived from its barrier and its key, so when a producer that
 * died partway through runs again, it adds only what is missing.
 */
export async function produceItems(
  parts: { store: Store; config: Config; flow: Flow },
  producer: Producer,
  ctx: StageContext,
  barrier: BarrierRow,
): Promise<Produced> {
  const { stage } = producer
  const adder = makeAdder(parts, producer, barrier, ctx.signal)
  const keys = new Map<string, number>()
  let position = 0
  try {
    for await (const item of guarded(itemsOf(stage, await stage.fanOut?.(ctx, ctx.input)))) {
      ctx.signal.throwIfAborted()
      const key = stage.key ? distinct(keys, stage.key(item, position), position) : String(position)
      const input = await encodeItem(parts, producer, { item, position, tenant: ctx.job.tenant })
      const limitKey = limitKeyOfItem(stage, item)
      if (!(await adder.add({ id: itemId(barrier, key), key, input, position, limitKey }))) return 'lost'
      position += 1
    }
    return (await adder.flush()) ? 'all' : 'lost'
  } catch (error) {
    if (!(error instanceof ProducerFailed) || position === 0)
      throw error instanceof ProducerFailed ? error.cause : error
    return (await adder.flush()) ? { thrown: error.cause } : 'lost'
  } finally {
    adder.stop()
  }
}

/** Marks what a producer throws, as opposed to errors in handling its items. */
class ProducerFailed extends Error {}

/** The same items; an error that the producer throws for the next one is marked as its own. An array can't throw. */
function guarded(items: Items<unknown>): Items<unknown> {
  return Array.isArray(items) ? items : guardedEach(items)
}

async function* guardedEach(items: Items<unknown>): AsyncGenerator<unknown> {
  try {
    yield* items
  } catch (cause) {
    throw new ProducerFailed('The producer failed.', { cause })
  }
}

interface Adder {
  /** Adds one item, and stores the batch if it is full. False: the attempt is no longer ours. */
  add(item: { id: string; key: string; input: string; position: number; limitKey: string | null }): Promise<boolean>
  /** Stores the current batch. */
  flush(): Promise<boolean>
  stop(): void
}

/** Stores items in batches, one after the other. The first items of a slow producer do not wait for its last. */
function makeAdder(
  { store, config }: { store: Store; config: Config },
  producer: Producer,
  barrier: BarrierRow,
  signal: AbortSignal,
): Adder {
  let batch = emptyBatch(config, producer, barrier)
  let bytes = 0
  let stored: Promise<boolean> = Promise.resolve(true)
  let isOver = false

  function flush(): Promise<boolean> {
    const full = batch
    if (full.ids.length === 0) return stored
    batch = emptyBatch(config, producer, barrier)
    bytes = 0
    stored = stored.then((isMine) => isMine && addBatch(store, producer.stage, full, signal))
    const end = () => {
      isOver = true
    }
    // the next add or flush reports it
    stored.then((isMine) => isMine || end(), end)
    return stored
  }

  const timer = setInterval(flush, lingerMs)
  return {
    async add({ id, key, input, position, limitKey }) {
      if (isOver) return stored
      batch.ids.push(id)
      batch.inputs.push(input)
      batch.keys.push(key)
      batch.positions.push(position)
      batch.limitKeys.push(limitKey)
      bytes += Buffer.byteLength(input)
      return batch.ids.length < config.batchSize && bytes < mostBytes ? true : flush()
    },
    flush,
    stop: () => clearInterval(timer),
  }
}

async function addBatch(store: Store, stage: AnyStage, batch: ItemBatch, signal: AbortSignal): Promise<boolean> {
  const [answer] = await store.contend(addItems, batch, { signal })
  if (answer?.is_mine && answer.is_over_threshold)
    throw new HoldfastError(
      'items_failed',
      `Stage ${stage.name} stopped producing items, because more items failed or were cancelled than it allows.`,
    )
  return answer?.is_mine === true
}

/** What the stage returned, if it can be iterated. A string can be too, but its characters are never meant. */
function itemsOf(stage: AnyStage, given: unknown): Items<unknown> {
  const isList =
    typeof given === 'object' && given !== null && (Symbol.iterator in given || Symbol.asyncIterator in given)
  if (isList) return given as Items<unknown>
  const what = given === null || given === undefined ? String(given) : `a ${typeof given}`
  throw new HoldfastError(
    'item_invalid',
    `Stage ${stage.name} fanned out to ${what}; return an array or a generator, empty if there is nothing to do.`,
  )
}

function emptyBatch(config: Config, { fence, job, stage, row }: Producer, barrier: BarrierRow): ItemBatch {
  const ofKind = kindOfItems(stage)
  const isPart = ofKind === undefined
  const kind = ofKind ?? job
  return {
    fence,
    barrierId: barrier.id,
    kind: kind.kind,
    queue: kind.queue,
    // items of an urgent job are as urgent; another kind has its own priority
    priority: isPart ? row.priority : kind.priority,
    crashBudget: kind.crashBudget ?? config.crashBudget,
    stage: isPart ? row.stage : 0,
    isPart,
    ids: [],
    inputs: [],
    keys: [],
    positions: [],
    limitKeys: [],
  }
}

/** The kind of the items, if they are jobs of another kind. */
function kindOfItems({ each }: AnyStage): AnyJob | undefined {
  return typeof each === 'object' && 'stages' in each ? (each as AnyJob) : undefined
}

/** What the limit of an item's own kind counts it by: computed from the item itself, not from what a middleware stores in its place. */
function limitKeyOfItem(stage: AnyStage, item: unknown): string | null {
  const kind = kindOfItems(stage)
  return kind ? limitKeyOf(kind.kind, kind.limit, item) : null
}

interface Produceable {
  item: unknown
  position: number
  tenant: string
}

async function encodeItem(
  { config, flow }: { config: Config; flow: Flow },
  { job, stage }: Producer,
  { item, position, tenant }: Produceable,
): Promise<string> {
  const ofKind = kindOfItems(stage)
  const schema = stage.item ?? ofKind?.input
  const checked = await schema?.['~standard'].validate(item)
  if (checked?.issues) refuse(stage, position, `does not match its schema: ${checked.issues[0]?.message}`)
  const stored = flow.isEmpty
    ? item
    : await flow.submit({ kind: (ofKind ?? job).kind, tenant, input: item, isItem: true })
  const encoded = encodeStorable(stored, `items[${position}]`)
  if ('problem' in encoded) return refuse(stage, position, `cannot be stored: ${encoded.path} ${encoded.problem}`)
  if (Buffer.byteLength(encoded.json) > config.maxInputBytes)
    refuse(stage, position, `is larger than ${config.maxInputBytes} bytes (setting maxInputBytes)`)
  return encoded.json
}

function distinct(keys: Map<string, number>, key: unknown, position: number): string {
  const text = String(key)
  const earlier = keys.get(text)
  if (earlier !== undefined)
    throw new HoldfastError(
      'item_invalid',
      `Items ${earlier} and ${position} have the same key ${JSON.stringify(text)}; item keys must be unique.`,
    )
  if (text === '' || !('json' in encodeStorable(text, 'key')))
    throw new HoldfastError(
      'item_invalid',
      `Item ${position} has a key that cannot be stored: ${JSON.stringify(text)}.`,
    )
  keys.set(text, position)
  return text
}

function refuse(stage: AnyStage, position: number, why: string): never {
  throw new HoldfastError('item_invalid', `Item ${position} of stage ${stage.name} ${why}.`)
}

/** The id of an item: a UUID of version 7 with the time of the barrier; the rest is derived from the barrier and the key. */
function itemId(barrier: BarrierRow, key: string): JobId {
  const hash = createHash('sha256').update(barrier.id).update('\n').update(key).digest()
  const bytes = Buffer.alloc(16)
  bytes.writeUIntBE(barrier.opened_at.getTime(), 0, 6)
  hash.copy(bytes, 6, 0, 10)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}` as JobId
}
