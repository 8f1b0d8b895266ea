/**
 * Barriers for executions that another system owns. The argument:
 *
 * - The parts are the ledger: one row each, with a column that is set once, on arrival. The count on the barrier's row is a cache, updated
 *   with each arrival. It says when to look at the ledger; the ledger decides.
 * - The barrier's row decides who is last. Everything that touches a barrier locks that row first: arrivals, arming, abort, expiry. So exactly
 *   one of two last arrivals finds the ledger complete, and it submits the continuation in the same statement.
 * - The continuation is data on the row, and its job's id is derived from the barrier and its arming. So a barrier that is complete but
 *   never fired (a restored backup, a change by hand) can be fired later by any process, and fires once however often that is tried.
 * - The number of an arming is never used twice. A decision about an expired barrier carries it: a barrier that was re-armed
 *   meanwhile, or removed and opened again, has another number.
 */
import { createHash } from 'node:crypto'
import { HoldfastError } from '../errors/errors.ts'
import { isName } from '../job/define.ts'
import { encodeStorable } from '../job/storable.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { type Group, group } from '../service/group.ts'
import { Apart } from '../transitions/contended-writes.ts'
import { type Arrival, type ArrivedRow, arriveOwned, getOwned, type OpenParams, openOwned } from './barrier.sql.ts'

/** What an open did: the barrier was opened or re-armed, or had fired before. */
export interface Opened {
  id: string
  status: 'opened' | 'armed' | 'fired'
  /** The number of this arming: it only grows, and is never used twice. */
  arming: number
  /** The id of its continuation, which exists once the barrier has fired. */
  job: string
}

/** The result of an arrival: `fired` if it was the last one, `abandoned` if the barrier is gone. */
export type Arrived = 'arrived' | 'fired' | 'already' | 'abandoned'

/** Opens or re-arms a barrier. If nothing happened, it asks for the reason after the write: before it, the answer could still change. */
export async function openBarrierOf(runner: Runner, params: OpenParams): Promise<Opened> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const [row] = await runner.run(openOwned, params)
    if (row?.is_past)
      refuse('expires must be in the future by the database clock', params.expiresAt ?? params.expiresMs)
    if (row?.arming) {
      const status = row.is_fired ? 'fired' : row.is_new ? 'opened' : 'armed'
      return { id: params.id, status, arming: row.arming, job: row.job_id as string }
    }
    const [now] = await runner.run(getOwned, { id: params.id, tenant: null, shown: 0 })
    // removed or opened by another process between two looks: the next try sees it
    if (!now) continue
    if (now.tenant !== params.tenant) conflict(params.id, 'already exists; choose another id')
    if (now.parts_hash !== params.partsHash)
      conflict(params.id, `is open with ${now.total} different parts; abort it first`)
    if (now.fired_at) return { id: params.id, status: 'fired', arming: now.arming, job: now.job_id }
  }
  return conflict(params.id, 'is being opened and removed by other processes at the same time; try again')
}

function conflict(id: string, why: string): never {
  throw new HoldfastError('barrier_conflict', `The barrier ${JSON.stringify(id)} ${why}.`)
}

/** Records arrivals; those that come at the same time share a commit. */
export interface Arriver {
  arrive(arrival: Arrival): Promise<Arrived>
  /** Resolves when no arrival is being written any more. */
  idle(): Promise<void>
}

type Answer = Arrived | HoldfastError

/** Makes an arriver on a store. */
export function makeArriver(store: Store, batchSize: number): Arriver {
  // unrelated arrivals share a batch: a barrier that can't be fired, or is locked, delays only its own
  const apart = new Apart<Arrival, Answer>({ store, run: arriveAll, nameOf: ({ id }) => id, refused: refusalOf })
  const arrivals: Group<Arrival, Answer> = group({
    most: batchSize,
    lanes: 2,
    write: (batch) => apart.write(batch),
  })
  return {
    async arrive(arrival) {
      return orThrow(await arrivals.add(arrival))
    },
    idle: () => arrivals.idle(),
  }
}

/** Records one arrival, inside a transaction that the caller owns. */
export async function arriveIn(runner: Runner, arrival: Arrival): Promise<Arrived> {
  const [answer] = await arriveAll(runner, [arrival])
  return orThrow(answer as Arrived | HoldfastError)
}

function orThrow(answer: Arrived | HoldfastError): Arrived {
  if (answer instanceof HoldfastError) throw answer
  return answer
}

/** The caller of a single arrival gets the database's own error. */
function refusalOf(error: unknown, count: number): HoldfastError {
  if (count === 1) throw error
  return error instanceof HoldfastError
    ? error
    : new HoldfastError('not_storable', 'Postgres refused this arrival.', { cause: error })
}

async function arriveAll(runner: Runner, batch: readonly Arrival[]): Promise<(Arrived | HoldfastError)[]> {
  const rows = await runner.run(arriveOwned, { arrivals: batch })
  const taken = new Set<string>()
  const answers = batch.map((arrival, index) => answerOf(arrival, rows[index] as ArrivedRow, taken))
  // of those that came together, the last one completed it
  for (const id of new Set(batch.filter((_, index) => rows[index]?.is_fired).map((arrival) => arrival.id))) {
    const last = answers.findLastIndex((answer, index) => answer === 'arrived' && batch[index]?.id === id)
    if (last >= 0) answers[last] = 'fired'
  }
  return answers
}

function answerOf(arrival: Arrival, row: ArrivedRow, taken: Set<string>): Arrived | HoldfastError {
  if (!row.is_there) return 'abandoned'
  if (!row.is_part)
    return new HoldfastError(
      'part_unknown',
      `The barrier ${JSON.stringify(arrival.id)} has no part ${JSON.stringify(arrival.part)}.`,
    )
  const name = JSON.stringify([arrival.id, arrival.part])
  if (!row.is_new || taken.has(name)) return 'already'
  taken.add(name)
  return 'arrived'
}

const mostParts = 1_000_000
const longestMs = 10 * 365 * 86_400_000
const farthestMs = Date.UTC(9999, 11, 31)

/** The parts of a barrier, checked: a number of them, or their names. */
export function partsOf(parts: unknown): Pick<OpenParams, 'names' | 'count' | 'partsHash'> {
  if (typeof parts === 'number') {
    if (!Number.isInteger(parts) || parts < 0 || parts > mostParts)
      refuse(`parts must be a whole number from 0 to ${mostParts}, or a list of names`, parts)
    return { names: [], count: parts, partsHash: `0..${parts}` }
  }
  if (!Array.isArray(parts) || parts.length > mostParts)
    refuse(`parts must be a whole number from 0 to ${mostParts}, or a list of at most that many names`, parts)
  const names = parts.map((part) => textOf('parts', part))
  const seen = new Set<string>()
  for (const name of names) {
    if (seen.has(name)) refuse('parts must be unique', name)
    seen.add(name)
  }
  const hash = createHash('sha256').update(JSON.stringify([...names].sort()))
  return { names, count: 0, partsHash: hash.digest('base64') }
}

/** When a barrier expires, checked: a time, or milliseconds from now. The database decides whether it is in the past. */
export function expiryOf(expires: unknown): Pick<OpenParams, 'expiresAt' | 'expiresMs'> {
  if (expires === undefined) return { expiresAt: null, expiresMs: null }
  if (expires instanceof Date && Math.abs(expires.getTime()) <= farthestMs)
    return { expiresAt: expires, expiresMs: null }
  if (typeof expires === 'number' && Number.isFinite(expires) && expires > 0 && expires <= longestMs)
    return { expiresAt: null, expiresMs: expires }
  return refuse('expires must be a valid Date, or milliseconds from now: more than 0, and at most ten years', expires)
}

/** A text that can name a barrier, a part or an execution. */
export function textOf(option: string, text: unknown): string {
  if (typeof text === 'string' && text.length > 0 && text.length <= 300 && 'json' in encodeStorable(text, option))
    return text
  return refuse(`${option} must be a string of 1 to 300 characters without NUL`, text)
}

/** A part as its caller names it: its name, or its number. */
export function partOf(part: unknown): string {
  return textOf('part', Number.isInteger(part) ? String(part) : part)
}

/** A tenant, if one is passed. */
export function tenantOf(tenant: unknown): string | null {
  if (tenant === undefined) return null
  return isName(tenant) ? tenant : refuse('tenant must be up to 100 letters, digits and any of _ . : -', tenant)
}

/** Throws an error that names the option and the rule that it violates. */
export function refuse(rule: string, value: unknown): never {
  throw new HoldfastError('option_invalid', `The option ${rule}, not ${shown(value)}.`)
}

function shown(value: unknown): string {
  const text =
    typeof value === 'bigint' || typeof value === 'symbol' ? String(value) : (JSON.stringify(value) ?? String(value))
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
