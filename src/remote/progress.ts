import type { Fence, HeldFence } from '../job/id.ts'
import type { Store } from '../postgres/store.ts'
import { fenceOfHeld } from '../worker/claim.sql.ts'
import { reportProgress, writeLogs } from '../worker/progress.sql.ts'
import { encodeLine, progressProblem } from '../worker/progress.ts'
import type { RemoteRow } from './remote.sql.ts'
import type { RemoteSettling } from './settle.ts'
import { mostLines, type RemoteReport, refuse, textOf } from './validate.ts'

type Entry = { fence: Fence; entry: RemoteReport }

const longestNote = 2_000

/** Throws if one of the reports is invalid, before any of them is written. */
export function checkReports(entries: Entry[]): void {
  for (const { entry } of entries) {
    const problem = entry.done === undefined ? undefined : progressProblem(entry.done, entry.total)
    if (problem) refuse(problem.replace(/\.$/, ''))
    if (entry.note !== undefined) textOf('note', entry.note, longestNote)
    const { log = [] } = entry
    if (!Array.isArray(log) || log.length > mostLines) refuse(`log must be a list of at most ${mostLines} lines`)
    if (log.some((line) => typeof line?.message !== 'string')) refuse('each line of log needs a message of type string')
  }
}

/** Writes reports of a remote worker. Reports about attempts that it does not hold are refused one by one. */
export async function writeReports(
  { store, settling }: { store: Store; settling: RemoteSettling },
  session: RemoteRow,
  entries: Entry[],
): Promise<('written' | 'lease_lost')[]> {
  const held = await settling.holders(
    session,
    entries.map(({ fence }) => fence),
  )
  const mine = entries.flatMap((one, index) => {
    const row = held[index]
    return row ? [{ ...one, fence: fenceOfHeld(row) }] : []
  })
  const alive = new Set(mine.map(({ fence }) => keyOf(fence)))
  const written = [await writeProgress(store, mine), await writeLines(store, mine)]
  // an attempt may have ended between the lookup and the write
  for (const { asked, rows } of written) {
    const there = new Set(rows.map(keyOf))
    for (const fence of asked) if (!there.has(keyOf(fence))) alive.delete(keyOf(fence))
  }
  const lost = entries.filter(({ fence }) => !alive.has(keyOf(fence))).map(({ fence }) => fence)
  await settling.refused(session, lost, 'progress')
  return entries.map(({ fence }) => (alive.has(keyOf(fence)) ? 'written' : 'lease_lost'))
}

type HeldEntry = { fence: HeldFence; entry: RemoteReport }

interface Written {
  asked: HeldFence[]
  rows: { id: string; attempt: number }[]
}

async function writeProgress(store: Store, entries: HeldEntry[]): Promise<Written> {
  // one statement can't write a row twice, so only the last report about an attempt counts
  const last = new Map(
    entries.filter(({ entry }) => entry.done !== undefined).map((one) => [keyOf(one.fence), one] as const),
  )
  const reports = [...last.values()]
  const asked = reports.map(({ fence }) => fence)
  if (reports.length === 0) return { asked, rows: [] }
  const rows = await store.contend(reportProgress, {
    fences: asked,
    done: reports.map(({ entry }) => entry.done as number),
    totals: reports.map(({ entry }) => entry.total ?? null),
    notes: reports.map(({ entry }) => (entry.note === undefined ? null : textOf('note', entry.note, longestNote))),
  })
  return { asked, rows }
}

async function writeLines(store: Store, entries: HeldEntry[]): Promise<Written> {
  const lines = entries.flatMap(({ fence, entry: { log = [] } }) => log.map((line) => ({ fence, line })))
  const asked = lines.map(({ fence }) => fence)
  if (lines.length === 0) return { asked, rows: [] }
  const rows = await store.run(writeLogs, {
    fences: asked,
    data: lines.map(({ line }) => encodeLine(line.message, line.data)),
  })
  return { asked, rows }
}

function keyOf({ id, attempt }: { id: string; attempt: number }): string {
  return `${id} ${attempt}`
}
