import { findStrange, holdForsaken, type OverdueRow, removeForsaken, takeOverdue } from '../barrier/owned-heal.sql.ts'
import { markFailed, type Owner, type Question, readStatus, type Unclear } from '../barrier/owner.ts'
import { HoldfastError } from '../errors/errors.ts'
import { isConnectionError } from '../store/connection.ts'
import type { Store } from '../store/store.ts'
import type { Duty, DutyReport } from './duties.ts'
import type { OrphanName } from './orphans.ts'
import { compare, workLeft } from './owned-duties.ts'
import { report } from './report.ts'

/** What it takes to ask owners. */
export interface Asking {
  /** Not the store of the others: an expired barrier is held while its owner is asked to mark, and a slow owner must not use up their connections. */
  store: Store
  owners: Readonly<Record<string, Owner>>
  timeoutMs: number
}

const most = 50
/** So long after its expiry a barrier has been taken by a process that knows its owner, if there is one. */
const strangeMs = 10_000
/** So many failures in a row are the owner's, not a row's: the rest is left for the next turn. */
const enough = 3

/**
 * The duties that ask other systems, one per owner: each runs in a loop of its own, so that an owner that is slow or down delays neither
 * the revival of jobs nor the barriers of other owners. They run in every process that knows the owner, whoever leads: each barrier is taken by
 * its row, and so asked about by one of them.
 */
export function ownerDuties(asking: Asking): Duty[] {
  const names = Object.keys(asking.owners)
  return [reportStrange(asking.store, names), ...names.map((name) => askOwner(asking, name))]
}

function reportStrange(store: Store, owners: readonly string[]): Duty {
  return {
    name: 'reportStrangeOwners',
    everyMs: 60_000,
    async run() {
      const rows = await store.run(findStrange, { owners, graceMs: strangeMs, limit: most })
      return report({ failed: rows.map((row) => failedOf(row, 'owner-unknown', strange(row.owner))) })
    },
  }
}

function strange(owner: string): HoldfastError {
  return new HoldfastError(
    'owner_unknown',
    `No process that works or reaps knows the owner ${JSON.stringify(owner)}; add it to connect({ owners }), or to the module of \`--owners-module\`.`,
  )
}

function askOwner(asking: Asking, name: string): Duty {
  return {
    name: 'askOwner',
    everyMs: 0,
    isAnyones: true,
    async run(_store, signal = new AbortController().signal) {
      const all = report({})
      const askedAbout = new Set<string>()
      for (let asked = 0, failures = 0; asked < most && failures < enough && !signal.aborted; asked++) {
        const [row] = await asking.store.run(takeOverdue, { owner: name })
        // an owner that takes longer to answer than the wait before the next question would be asked on and on
        if (!row || askedAbout.has(row.id)) return all
        askedAbout.add(row.id)
        const one = await expireAlone(asking, asking.owners[name] as Owner, row, signal)
        all.healed.push(...one.healed)
        all.skipped.push(...one.skipped)
        all.failed.push(...one.failed)
        failures = one.failed.length > 0 ? failures + 1 : 0
      }
      return { ...all, isFull: all.healed.length > 0 }
    },
  }
}

/** One bad row does not block the others; a broken wire is no row's fault. */
async function expireAlone(asking: Asking, owner: Owner, row: OverdueRow, signal: AbortSignal): Promise<DutyReport> {
  try {
    return await expireOne(asking, owner, row, signal)
  } catch (error) {
    if (isConnectionError(error)) throw error
    return report({ failed: [failedOf(row, 'owned-expired', error)] })
  }
}

/** Deals with an expired barrier: the ledger is asked first, then its owner, and whatever is not a clear answer changes nothing. */
async function expireOne(
  { store, timeoutMs }: Asking,
  owner: Owner,
  row: OverdueRow,
  signal: AbortSignal,
): Promise<DutyReport> {
  const compared = await compare(store, [row])
  if (compared.failed.length + compared.held.length > 0 || compared.healed.some(({ job }) => job !== undefined))
    return compared
  const told = await settle({ store, owner, row, timeoutMs, signal })
  return { ...told, healed: [...compared.healed, ...told.healed] }
}

interface Case {
  store: Store
  owner: Owner
  row: OverdueRow
  timeoutMs: number
  signal: AbortSignal
}

async function settle({ store, owner, row, timeoutMs, signal }: Case): Promise<DutyReport> {
  if (row.tenant === null) return report({ failed: [failedOf(row, 'owned-tenant-missing', tenantMissing(row))] })
  const question = { execution: row.execution, tenant: row.tenant, timeoutMs, signal }
  const status = await readStatus(owner, question)
  if (status.word === 'running') return mark(store, owner, row, question)
  if (status.word === 'final' || status.word === 'gone') return cleanUp(store, row, status.word)
  return unclear(row, status, 'status', signal)
}

function tenantMissing({ id }: OverdueRow): HoldfastError {
  return new HoldfastError(
    'tenant_missing',
    `The barrier ${JSON.stringify(id)} has no tenant, so its owner cannot be asked; set it in holdfast.owned_barrier, or abort the barrier.`,
  )
}

/** The execution has ended, however it did: nothing is overwritten, and nobody waits for the barrier any more. */
async function cleanUp(store: Store, row: OverdueRow, word: 'final' | 'gone'): Promise<DutyReport> {
  const [removed] = await store.run(removeForsaken, { ...row, word: word === 'final' ? 'ended' : 'gone' })
  if (!removed) return rearmed(row)
  const message =
    word === 'final'
      ? `expired with ${workLeft(row)}; its execution has ended by itself, so it was removed`
      : `expired with ${workLeft(row)}; its execution is gone, so it was removed`
  return report({ healed: [{ barrier: row.id, orphan: 'owner-ended', message }] })
}

/** Marks the execution while the barrier is held: whoever arms it, or arrives, waits and then sees what became of it. */
function mark(store: Store, owner: Owner, row: OverdueRow, question: Question): Promise<DutyReport> {
  return store.transaction(async (runner) => {
    const [held] = await runner.run(holdForsaken, row)
    if (!held) return rearmed(row)
    const left = workLeft({ total: held.total, arrived: held.total - held.left })
    const answer = await markFailed(owner, question, `The barrier ${row.id} expired with ${left}.`)
    if (answer.word === 'skipped' || answer.word === 'no')
      return skippedOf(row, 'owner-unclear', `its owner answered ${answer.word} to the mark; kept`)
    if (answer.word !== 'done') return unclear(row, answer, 'mark', question.signal)
    const [removed] = await runner.run(removeForsaken, { ...row, word: 'marked' })
    if (!removed) return rearmed(row)
    const message = `expired with ${left}; its execution was marked failed`
    return report({ healed: [{ barrier: row.id, orphan: 'owned-expired', message }] })
  })
}

function rearmed(row: OverdueRow): DutyReport {
  return skippedOf(row, 'owned-rearmed', 'it was armed again, or moved, while its owner was asked; left alone')
}

/** Not an answer: the row is kept, and asked about again later. */
function unclear(row: OverdueRow, answer: Unclear, about: string, signal: AbortSignal): DutyReport {
  // we stop: that is nobody's failure
  if (signal.aborted) return report({})
  if (answer.word === 'failed') return report({ failed: [failedOf(row, 'owner-unreachable', answer.error)] })
  const message = `its owner answered ${JSON.stringify(answer.said)} about its ${about}, which means nothing here; kept`
  return skippedOf(row, 'owner-unclear', message, answer.word === 'garbage')
}

function skippedOf({ id }: OverdueRow, orphan: OrphanName, message: string, isError = false): DutyReport {
  return report({ skipped: [{ barrier: id, orphan, message, isError }] })
}

function failedOf({ id, lost_ms }: { id: string; lost_ms: number }, orphan: OrphanName, error: unknown) {
  return { id, lost_ms, error, orphan, isBarrier: true as const }
}
