import { pause } from '../service/service.ts'
import type { Runner } from '../store/store.ts'
import { takeMark } from './tide.sql.ts'

/**
 * How far the log may be read. Numbers are drawn in order, but transactions commit in any order: behind a row that is there, one with
 * a lower number may still appear. A reader that went by what it sees would skip it for ever.
 *
 * The invariant: every event up to `safe` is there or never will be. A mark is the last number drawn, and a transaction id that was
 * taken *after* that. A transaction with a later id has it before it draws a number (the table computes txid before seq), and so
 * draws a higher one. Once all transactions with lower ids have ended, nobody is left who could write a number up to the mark's.
 *
 * Events are written in one database, but transaction ids belong to the whole server. So where the server lets us see who runs in
 * this database, only those are waited for, and an import in another one holds nobody back.
 *
 * Reading in the order of (txid, seq) up to the oldest running transaction would not skip rows either, but it would turn around
 * the events of a job: whoever waits for a row lock has its id already, and writes after one with a later id. Numbers are drawn
 * while the job's row is held, so per job they are right.
 */
export interface Tide {
  look(): Promise<Level>
}

/** What a look at the log showed. */
export interface Level {
  /** Every event up to here is there or never will be. */
  safe: number
  /** The last number that was drawn. Above `safe`, somebody may still be writing. */
  top: number
}

interface Mark {
  top: number
  txid: bigint
}

const mostMarks = 64

/** Makes a tide. Many readers of a process may share one. */
export function makeTide(store: Runner): Tide {
  let marks: Mark[] = []
  let safe = 0
  let known = 0
  return {
    async look() {
      const [row] = await store.run(takeMark, { known })
      if (!row) throw new Error('The log gave no mark.')
      const { top, mark_txid, oldest_txid, running } = row
      if (mark_txid !== null) marks.push({ top, txid: BigInt(mark_txid) })
      known = Math.max(known, top)
      const oldest = BigInt(oldest_txid)
      const ids = running?.map(BigInt)
      const isSafe = ({ txid }: Mark) => txid <= oldest || ids?.every((id) => !isBefore(id, txid)) === true
      for (const mark of marks) if (isSafe(mark)) safe = Math.max(safe, mark.top)
      marks = marks.filter((mark) => !isSafe(mark))
      // behind one long transaction they pile up; fewer are only coarser, but the last one is what everybody waits for
      if (marks.length > mostMarks) marks = marks.filter((_, index) => index % 2 === 0)
      return { safe, top }
    },
  }
}

/** Whether an id without its epoch, of a transaction that runs, is lower than a whole one: none that runs is two thousand million away. */
function isBefore(id: bigint, txid: bigint): boolean {
  const ahead = BigInt.asUintN(32, txid - id)
  return ahead > 0n && ahead < 2n ** 31n
}

/** How long to wait for those who write at this moment. */
const patienceMs = 2_000

/**
 * The end of the log at this moment, for whoever begins now: what is written from here on has a higher number. Those who write already are
 * waited for a while, so that what they commit meanwhile is known to be before; one that writes for longer counts as before too.
 */
export async function endOf(tide: Tide): Promise<number> {
  return (await knownEndOf(tide)).seq
}

/** The same, and whether everything up to it is there or never will be. */
export async function knownEndOf(tide: Tide): Promise<{ seq: number; isSafe: boolean }> {
  const sinceMs = performance.now()
  const { top } = await tide.look()
  for (let { safe } = await tide.look(); safe < top; { safe } = await tide.look()) {
    if (performance.now() - sinceMs > patienceMs) return { seq: top, isSafe: false }
    await pause(5)
  }
  return { seq: top, isSafe: true }
}
