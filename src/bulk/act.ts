import type { Runner } from '../postgres/store.ts'
import { redoJobs } from '../submit/redo.sql.ts'
import { cancelJobs } from '../submit/submit.sql.ts'
import { deleteJobs, keptJobs, leftJobs, lockEnded, lockLive, reprioritize, reschedule } from './act.sql.ts'
import type { HeldBulk } from './carry-on.sql.ts'
import { type BulkOperation, ruleOf, type SkipReason } from './operations.ts'

/** A job that was left as it was. */
export interface Skip {
  id: string
  reason: SkipReason
  error: string | null
}

/** What was done to a page of jobs. */
export interface Acted {
  done: string[]
  skipped: Skip[]
}

/** What an operation needs besides its row. */
export interface ActOptions {
  /** How long idempotency keys of removed jobs are kept. */
  keysMs: number
}

type Act = (runner: Runner, bulk: HeldBulk, ids: string[], options: ActOptions) => Promise<Acted>

const acts: Record<BulkOperation, Act> = { cancel, redo, delete: remove, priority: changePriority, reschedule: move }

/** Applies a bulk operation to jobs, inside the transaction of the page. Locked jobs are skipped, not waited for. */
export function act(runner: Runner, bulk: HeldBulk, ids: string[], options: ActOptions): Promise<Acted> {
  return acts[bulk.operation](runner, bulk, ids, options)
}

/** Items that are left over, because they were being moved or are too many for one statement, are cancelled by the reaper. */
async function cancel(runner: Runner, bulk: HeldBulk, ids: string[]): Promise<Acted> {
  const { states } = bulk.filter
  const isAnyState = ruleOf('cancel').states.every((state) => states.includes(state))
  const meant = isAnyState ? ids : idsOf(await runner.run(lockLive, { ids, states, seq: bulk.seq }))
  const rows = meant.length > 0 ? await runner.run(cancelJobs, { ids: meant, ...recorded(bulk) }) : []
  return acted(runner, bulk, ids, idsOf(rows))
}

async function redo(runner: Runner, bulk: HeldBulk, ids: string[]): Promise<Acted> {
  const locked = idsOf(await runner.run(lockEnded, { ids, states: bulk.filter.states, seq: bulk.seq }))
  const isFromStart = bulk.change.from === 'start'
  const redone = locked.length > 0 ? await runner.run(redoJobs, { ids: locked, isFromStart, ...recorded(bulk) }) : []
  const done = new Set(idsOf(redone))
  // nothing else can keep a locked job from being redone
  const stray = locked.filter((id) => !done.has(id)).map((id) => skip(id, 'stray'))
  return acted(runner, bulk, ids, [...done], stray)
}

async function remove(runner: Runner, bulk: HeldBulk, ids: string[], { keysMs }: ActOptions): Promise<Acted> {
  const locked = idsOf(await runner.run(lockEnded, { ids, states: bulk.filter.states, seq: bulk.seq }))
  const done = locked.length > 0 ? idsOf(await runner.run(deleteJobs, { ids: locked, keysMs })) : []
  const left = without(locked, done)
  const kept = left.length > 0 ? await runner.run(keptJobs, { ids: left }) : []
  const skipped = kept.map(({ id, reason }) => skip(id, reason))
  return acted(runner, bulk, ids, done, skipped)
}

async function changePriority(runner: Runner, bulk: HeldBulk, ids: string[]): Promise<Acted> {
  const priority = bulk.change.priority as number
  return acted(runner, bulk, ids, idsOf(await runner.run(reprioritize, { ids, priority, ...recorded(bulk) })))
}

async function move(runner: Runner, bulk: HeldBulk, ids: string[]): Promise<Acted> {
  const { runAt, delayMs = 0 } = bulk.change
  const at = runAt === undefined ? new Date(bulk.asked_at.getTime() + delayMs) : new Date(runAt)
  return acted(runner, bulk, ids, idsOf(await runner.run(reschedule, { ids, runAt: at, ...recorded(bulk) })))
}

/** What is recorded with each change. */
function recorded({ id, tenant, asked_by, reason }: HeldBulk) {
  return { bulk: id, tenant, by: asked_by, reason }
}

/** Says of each job whether it was done, and why not. */
async function acted(
  runner: Runner,
  { filter, seq, operation }: HeldBulk,
  ids: string[],
  all: string[],
  skipped: Skip[] = [],
): Promise<Acted> {
  const done = ids.filter(among(all))
  const isMove = operation === 'reschedule'
  const left = without(without(ids, done), idsOf(skipped))
  const why = left.length > 0 ? await runner.run(leftJobs, { ids: left, states: filter.states, seq, isMove }) : []
  return { done, skipped: [...skipped, ...why.map(({ id, reason }) => skip(id, reason))] }
}

/** A job that was left as it was. */
export function skip(id: string, reason: SkipReason, error: string | null = null): Skip {
  return { id, reason, error }
}

function idsOf(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id)
}

function among(ids: readonly string[]): (id: string) => boolean {
  const all = new Set(ids)
  return (id) => all.has(id)
}

function without(ids: readonly string[], others: readonly string[]): string[] {
  const isOther = among(others)
  return ids.filter((id) => !isOther(id))
}
