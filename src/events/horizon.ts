import type { Runner } from '../postgres/store.ts'
import { pause } from '../service/service.ts'
import { takeMark } from './horizon.sql.ts'

/**
 * How far the log may be read. Numbers are drawn in order, but transactions commit in any order: a row with a lower number may still appear
 * before one that is already visible. A reader that trusted what it sees would skip that row forever.
 *
 * The invariant: every event up to `safe` is visible or never will be. A mark is the last number drawn, and a transaction id that was taken
 * *after* it. A transaction with a later id has that id before it draws a number (the table computes txid before seq), and so draws a higher
 * number. Once all transactions with lower ids have ended, no transaction can write a number up to the mark's.
 *
 * Events are written in one database, but transaction ids belong to the whole server. If the server shows which transactions run in this
 * database, only those are waited for, and an import into another database holds nobody back.
 *
 * Reading in the order of (txid, seq) up to the oldest running transaction would not skip rows either, but would reorder the events of a job:
 * a transaction that waits for a row lock already has its id, and writes after one with a later id. Numbers are drawn while the job's row is
 * locked, so they are in order per job.
 *
 * A database that is restored from a backup draws numbers that were drawn before. Everything known about the old log is then forgotten, and
 * readers forget what they know about their cursors.
 */
export interface Horizon {
  look(): Promise<Level>
}

/** How far the log may be read at a moment. */
export interface Level {
  /** Every event up to here is visible or never will be. */
  safe: number
  /** The last number drawn. Above `safe`, transactions may still be writing. */
  top: number
  /** How many times the log was replaced by an earlier one. */
  restores: number
}

interface Mark {
  top: number
  txid: bigint
}

const mostMarks = 64

/** Makes a horizon. The readers of a process may share one. */
export function makeHorizon(store: Runner): Horizon {
  let marks: Mark[] = []
  let safe = 0
  let known = 0
  let logId: string | undefined
  let restores = 0
  const horizon: Horizon = {
    async look() {
      const [row] = await store.run(takeMark, { known })
      if (!row) throw new Error('The log returned no mark.')
      const { top, mark_txid, oldest_txid, running, log_id } = row
      const isAnother = logId !== undefined && (log_id !== logId || top < known)
      logId = log_id
      if (isAnother) {
        marks = []
        safe = 0
        known = 0
        restores += 1
        return horizon.look()
      }
      if (mark_txid !== null) marks.push({ top, txid: BigInt(mark_txid) })
      known = Math.max(known, top)
      const oldest = BigInt(oldest_txid)
      const ids = running?.map(BigInt)
      const isSafe = ({ txid }: Mark) => txid <= oldest || ids?.every((id) => !isBefore(id, txid)) === true
      for (const mark of marks) if (isSafe(mark)) safe = Math.max(safe, mark.top)
      marks = marks.filter((mark) => !isSafe(mark))
      // marks pile up behind one long transaction. With fewer of them, `safe` only advances in larger steps, but the last one must stay
      if (marks.length > mostMarks) marks = marks.filter((_, index) => index % 2 === 0)
      return { safe, top, restores }
    },
  }
  return horizon
}

/** Whether a 32-bit id of a running transaction is lower than a 64-bit id: running transactions are never two billion ids apart. */
function isBefore(id: bigint, txid: bigint): boolean {
  const ahead = BigInt.asUintN(32, txid - id)
  return ahead > 0n && ahead < 2n ** 31n
}

/** How long to wait for open transactions. */
const patienceMs = 2_000

/**
 * The current end of the log, for readers that start now: everything written from here on has a higher number. It waits a while for open
 * transactions, so that their events are known to be before the end; those of a transaction that takes longer count as before it too.
 */
export async function endOf(horizon: Horizon): Promise<number> {
  return (await knownEndOf(horizon)).seq
}

/** The same, and whether every event up to it is visible or never will be. */
export async function knownEndOf(horizon: Horizon): Promise<{ seq: number; isSafe: boolean }> {
  const sinceMs = performance.now()
  const { top } = await horizon.look()
  for (let { safe } = await horizon.look(); safe < top; { safe } = await horizon.look()) {
    if (performance.now() - sinceMs > patienceMs) return { seq: top, isSafe: false }
    await pause(5)
  }
  return { seq: top, isSafe: true }
}
