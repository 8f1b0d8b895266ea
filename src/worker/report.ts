import { messageOf } from '../errors/errors.ts'
import { encodeStorable } from '../job/storable.ts'
import { loop, type Service } from '../service/service.ts'
import { runBatch, type Told } from '../store/batch.ts'
import { isConnectionError } from '../store/connection.ts'
import type { Runner, Store } from '../store/store.ts'
import type { HeldFence } from '../job/id.ts'
import type { Attempt } from './attempt.ts'
import type { Reporter } from './handler.ts'
import { reportProgress, writeLogs } from './report.sql.ts'

/** Collects what handlers report and writes it in groups, fenced. */
export interface Reports extends Reporter, Service {
  /** Writes what is there for this attempt, if anything, so that it stands before the attempt's outcome. */
  flushFor(attempt: Attempt): Promise<void> | undefined
}

interface Progress {
  fence: HeldFence
  done: number
  total: number | null
  note: string | null
}

interface LogLine {
  fence: HeldFence
  data: string
}

const everyMs = 200
/** A runaway handler must not fill the log of events. */
const mostLinesPerAttempt = 1_000

/** Makes the reports of a worker. */
export function makeReports(options: {
  store: Store
  onRefused: (fences: HeldFence[], write: string) => void
  onTrouble: (error: unknown) => void
}): Reports {
  const progress = new Map<Attempt, Progress>()
  const lineCounts = new WeakMap<Attempt, number>()
  const lines: LogLine[] = []
  const told = new Set<string>()
  let writing: Promise<void> = Promise.resolve()
  const flusher = loop({ turn: () => flush().then(() => everyMs), onError: options.onTrouble })

  function flush(): Promise<void> {
    writing = writing.then(writeAll).catch(options.onTrouble)
    return writing
  }

  async function writeAll(): Promise<void> {
    const reports = [...progress.values()]
    const log = lines.splice(0)
    progress.clear()
    if (reports.length > 0) await writeProgress(reports).catch(options.onTrouble)
    if (log.length > 0) await writeLines(log).catch((error) => keepLines(log, error))
  }

  /** A broken wire costs no line; only so many are kept meanwhile. Lines whose answer was lost may then stand twice. */
  function keepLines(log: LogLine[], error: unknown): void {
    options.onTrouble(error)
    if (isConnectionError(error) && lines.length + log.length <= mostLinesPerAttempt) lines.unshift(...log)
  }

  async function writeProgress(reports: Progress[]): Promise<void> {
    const run = (runner: Runner, some: Progress[]) =>
      runner.run(reportProgress, {
        fences: some.map(({ fence }) => fence),
        done: some.map(({ done }) => done),
        totals: some.map(({ total }) => total),
        notes: some.map(({ note }) => note),
      })
    await writeApart(reports, 'progress', run)
  }

  async function writeLines(log: LogLine[]): Promise<void> {
    const run = (runner: Runner, some: LogLine[]) =>
      runner.run(writeLogs, {
        fences: some.map(({ fence }) => fence),
        data: some.map(({ data }) => data),
      })
    const held = await writeApart(log, 'log', run)
    if (lines.length + held.length <= mostLinesPerAttempt) lines.unshift(...held)
  }

  /** Writes reports; what is wrong with one, or held by another transaction, keeps no other. Answers those that are held. */
  async function writeApart<Report extends { fence: HeldFence }>(
    reports: Report[],
    write: string,
    run: (runner: Runner, some: Report[]) => Promise<{ id: string; attempt: number }[]>,
  ): Promise<Report[]> {
    const told = await runBatch(options.store, {
      items: reports,
      async run(runner, some) {
        // by attempt, for a lost one and its successor may report from one worker
        const written = new Set((await run(runner, some)).map(({ id, attempt }) => `${id} ${attempt}`))
        return some.map(({ fence }) => written.has(`${fence.id} ${fence.attempt}`))
      },
    })
    tellRefused(
      reports.filter((_, index) => isUnwritten(told[index] as Told<boolean>)).map(({ fence }) => fence),
      write,
    )
    for (const one of told) if (one.is === 'refused') options.onTrouble(one.error)
    return reports.filter((_, index) => told[index]?.is === 'held')
  }

  function tellRefused(fences: HeldFence[], write: string): void {
    const refused = fences.filter(({ id, attempt }) => isNews(`${id} ${attempt} ${write}`))
    if (refused.length > 0) options.onRefused(refused, write)
  }

  /** A handler that goes on reporting after it was refused is told of once. */
  function isNews(refusal: string): boolean {
    if (told.has(refusal)) return false
    if (told.size >= mostLinesPerAttempt) told.clear()
    told.add(refusal)
    return true
  }

  return {
    start: () => flusher.start(),
    async stop() {
      await flusher.stop()
      await flush()
    },
    progress(attempt, done, total, note) {
      if (attempt.isOver) return
      const problem = progressProblem(done, total)
      if (problem) throw new TypeError(problem)
      progress.set(attempt, {
        fence: attempt.fence,
        done,
        total: total ?? null,
        note: note === undefined ? null : note.replaceAll('\0', '').toWellFormed(),
      })
    },
    log(attempt, message, data) {
      const count = (lineCounts.get(attempt) ?? 0) + 1
      lineCounts.set(attempt, count)
      if (attempt.isOver || count > mostLinesPerAttempt) return
      const isLast = count === mostLinesPerAttempt
      lines.push({
        fence: attempt.fence,
        data: encodeLine(isLast ? 'No more lines of this attempt are kept.' : message, isLast ? undefined : data),
      })
    },
    flushFor: (attempt) => (progress.has(attempt) || lineCounts.has(attempt) ? flush() : undefined),
  }
}

function isUnwritten(told: Told<boolean>): boolean {
  return told.is === 'done' && !told.answer
}

/** What is wrong with a report of progress; undefined if nothing is. */
export function progressProblem(done: unknown, total: unknown): string | undefined {
  if (typeof done !== 'number' || !Number.isFinite(done) || done < 0)
    return `progress(done): done must be a number from 0, not ${String(done)}.`
  if (total !== undefined && (typeof total !== 'number' || !Number.isFinite(total) || total < 0))
    return `progress(done, total): total must be a number from 0, not ${String(total)}.`
  return undefined
}

/** A line of a log as it is stored. What can't be stored is dropped, and the line says so. */
export function encodeLine(message: string, data: Record<string, unknown> | undefined): string {
  const text = String(message).replaceAll('\0', '').toWellFormed().slice(0, 10_000)
  if (data === undefined) return JSON.stringify({ message: text })
  const encoded = encodeStorable({ message: text, data }, 'log')
  if ('json' in encoded && encoded.json.length < 100_000) return encoded.json
  return JSON.stringify({
    message: text,
    dropped: 'problem' in encoded ? `${encoded.path} ${encoded.problem}` : messageOf('data over 100,000 characters'),
  })
}
