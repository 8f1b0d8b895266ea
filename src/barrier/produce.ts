import { createHash } from 'node:crypto'
import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { AnyJob, AnyStage, StageContext } from '../job/define.ts'
import type { Items } from '../job/fan-out.ts'
import type { Fence, JobId } from '../job/id.ts'
import { encodeStorable } from '../job/storable.ts'
import type { Runner } from '../store/store.ts'
import { addItems, type BarrierRow, type ItemBatch } from './barrier.sql.ts'

/** The attempt that fans out. */
export interface Producer {
  readonly fence: Fence
  readonly job: AnyJob
  readonly stage: AnyStage
  readonly row: { readonly stage: number }
}

/**
 * Asks the stage for its items and stores them, batch by batch. False: the attempt is no longer ours. An item's id follows from its
 * barrier and its key, so a producer that died half-way adds on its second run only what is missing.
 */
export async function produceItems(
  parts: { store: Runner; config: Config },
  producer: Producer,
  ctx: StageContext,
  barrier: BarrierRow,
): Promise<boolean> {
  const { stage } = producer
  const batch = emptyBatch(parts.config, producer, barrier)
  const keys = new Map<string, number>()
  let position = 0
  for await (const item of itemsOf(stage, await stage.fanOut?.(ctx, ctx.input))) {
    ctx.signal.throwIfAborted()
    const key = stage.key ? distinct(keys, stage.key(item, position), position) : String(position)
    batch.ids.push(itemId(barrier, key))
    batch.inputs.push(await encodeItem(parts.config, producer, item, position))
    batch.keys.push(key)
    batch.positions.push(position)
    position += 1
    if (batch.ids.length >= parts.config.batchSize && !(await flush(parts.store, batch))) return false
  }
  return batch.ids.length === 0 || (await flush(parts.store, batch))
}

/** What the stage gave, if one can go through it. A text can be gone through too, but nobody means its letters. */
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

async function flush(store: Runner, batch: ItemBatch): Promise<boolean> {
  const [answer] = await store.run(addItems, batch)
  for (const list of [batch.ids, batch.inputs, batch.keys, batch.positions]) list.length = 0
  return answer?.is_mine === true
}

function emptyBatch(config: Config, { fence, job, stage, row }: Producer, barrier: BarrierRow): ItemBatch {
  const isPart = !(typeof stage.each === 'object' && 'stages' in stage.each)
  const kind = isPart ? job : (stage.each as AnyJob)
  return {
    fence,
    barrierId: barrier.id,
    kind: kind.kind,
    queue: kind.queue,
    priority: kind.priority,
    crashBudget: kind.crashBudget ?? config.crashBudget,
    stage: isPart ? row.stage : 0,
    isPart,
    ids: [],
    inputs: [],
    keys: [],
    positions: [],
  }
}

async function encodeItem(config: Config, { stage }: Producer, item: unknown, position: number): Promise<string> {
  const schema =
    stage.item ?? (typeof stage.each === 'object' && 'stages' in stage.each ? (stage.each as AnyJob).input : undefined)
  const checked = await schema?.['~standard'].validate(item)
  if (checked?.issues) refuse(stage, position, `does not fit its schema: ${checked.issues[0]?.message}`)
  const encoded = encodeStorable(item, `items[${position}]`)
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
      `Items ${earlier} and ${position} have the same key ${JSON.stringify(text)}; each needs one of its own.`,
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

/** The id of an item: a UUID of version 7 whose time is the barrier's, and whose rest follows from the barrier and the key. */
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
