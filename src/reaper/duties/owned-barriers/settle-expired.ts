import { holdExpired, type OverdueRow, removeExpired } from '../../../barrier/heal.sql.ts'
import { markFailed, type Owner, type Question, readStatus, type Unclear } from '../../../barrier/owner.ts'
import { HoldfastError } from '../../../errors/errors.ts'
import { isNobodysFault } from '../../../postgres/connection.ts'
import type { Store } from '../../../postgres/store.ts'
import { type DutyReport, type FailedRow, report } from '../../duty.ts'
import type { OrphanName } from '../../orphans.ts'
import { compareLedgers, workLeft } from './compare-ledgers.ts'

/** An expired barrier, and the owner to ask about it. */
export interface Expired {
  store: Store
  owner: Owner
  row: OverdueRow
  timeoutMs: number
  signal: AbortSignal
}

/**
 * Settles an expired barrier: first by its ledger, then by its owner. Anything but a clear answer changes nothing. An error that is about
 * this row is reported and blocks no other row; a broken connection or a full disk is thrown.
 */
export async function settleExpired(expired: Expired): Promise<DutyReport> {
  try {
    return await byLedgerOrOwner(expired)
  } catch (error) {
    if (isNobodysFault(error)) throw error
    return report({ failed: [failedOf(expired.row, 'owned-expired', error)] })
  }
}

async function byLedgerOrOwner(expired: Expired): Promise<DutyReport> {
  const compared = await compareLedgers(expired.store, [expired.row])
  if (compared.failed.length + compared.held.length > 0 || compared.healed.some(({ job }) => job !== undefined))
    return compared
  const told = await byOwner(expired)
  return { ...told, healed: [...compared.healed, ...told.healed] }
}

async function byOwner({ store, owner, row, timeoutMs, signal }: Expired): Promise<DutyReport> {
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
    `The barrier ${JSON.stringify(id)} has no tenant, so its owner cannot be asked; set the tenant in holdfast.owned_barrier, or abort the barrier.`,
  )
}

/** Removes the barrier of an execution that has ended. Nothing is overwritten, and nothing waits for the barrier any more. */
async function cleanUp(store: Store, row: OverdueRow, word: 'final' | 'gone'): Promise<DutyReport> {
  const [removed] = await store.run(removeExpired, { ...row, word: word === 'final' ? 'ended' : 'gone' })
  if (!removed) return rearmed(row)
  const message =
    word === 'final'
      ? `expired with ${workLeft(row)}; its execution has ended on its own, so it was removed`
      : `expired with ${workLeft(row)}; its execution is gone, so it was removed`
  return report({ healed: [{ barrier: row.id, orphan: 'owner-ended', message }] })
}

/** Marks the execution failed while the barrier is locked. Arming it and arriving parts wait, and then see what became of it. */
function mark(store: Store, owner: Owner, row: OverdueRow, question: Question): Promise<DutyReport> {
  return store.transaction(async (runner) => {
    const [held] = await runner.run(holdExpired, row)
    if (!held) return rearmed(row)
    const left = workLeft({ total: held.total, arrived: held.total - held.left })
    const answer = await markFailed(owner, question, `The barrier ${row.id} expired with ${left}.`)
    if (answer.word === 'skipped' || answer.word === 'no')
      return skipped(row, 'owner-unclear', `its owner answered ${answer.word} to the mark; kept`)
    if (answer.word !== 'done') return unclear(row, answer, 'mark', question.signal)
    const [removed] = await runner.run(removeExpired, { ...row, word: 'marked' })
    if (!removed) return rearmed(row)
    const message = `expired with ${left}; its execution was marked failed`
    return report({ healed: [{ barrier: row.id, orphan: 'owned-expired', message }] })
  })
}

function rearmed(row: OverdueRow): DutyReport {
  return skipped(row, 'owned-rearmed', 'it was armed again, or moved, while its owner was asked; left alone')
}

/** Keeps a row whose owner gave no clear answer; it is asked again later. */
function unclear(row: OverdueRow, answer: Unclear, about: string, signal: AbortSignal): DutyReport {
  // this process is stopping, which is not a failure
  if (signal.aborted) return report({})
  if (answer.word === 'failed') return report({ failed: [failedOf(row, 'owner-unreachable', answer.error)] })
  const message = `its owner answered ${JSON.stringify(answer.said)} about its ${about}, which means nothing here; kept`
  return skipped(row, 'owner-unclear', message, answer.word === 'garbage')
}

function skipped({ id }: OverdueRow, orphan: OrphanName, message: string, isError = false): DutyReport {
  return report({ skipped: [{ barrier: id, orphan, message, isError }] })
}

/** A barrier that could not be settled, with its class. */
export function failedOf(row: { id: string; lost_ms: number }, orphan: OrphanName, error: unknown): FailedRow {
  return { id: row.id, lost_ms: row.lost_ms, error, orphan, isBarrier: true }
}
