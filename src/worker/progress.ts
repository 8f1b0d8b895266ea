import type { HeldFence } from '../job/id.ts'
import { encodeStorable } from '../job/storable.ts'
import { isNobodysFault } from '../postgres/connection.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { type Loop, loop, type Service } from '../service/service.ts'
import { runBatch, type Told } from '../transitions/batch.ts'
import type { Attempt } from './attempt.ts'
import type { Reporter } from './handler.ts'
import { reportProgress, writeLogs } from './progress.sql.ts'

/** What reports need. */
export interface ReportsOptions {
  store: Store
  onRefused: (fences: HeldFence[], write: string) => void
  onError: (error: unknown) => void
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
/** How long reports skip locked rows, after one had to wait for another transaction. */
const waryMs = 30_000
/** A runaway handler must not fill the event log. */
const mostLinesPerAttempt = 1_000
const mostRefusals = 1_000

/** Collects what handlers report, and writes it in fenced batches. */
export class Reports implements Reporter, Service {
  readonly #options: ReportsOptions
  readonly #flusher: Loop
  readonly #progress = new Map<Attempt, Progress>()
  readonly #lines: LogLine[] = []
  readonly #lineCounts = new WeakMap<Attempt, number>()
  readonly #refused = new Set<string>()
  #writing: Promise<void> = Promise.resolve()
  #waryUntilMs = Number.NEGATIVE_INFINITY

  constructor(options: ReportsOptions) {
    this.#options = options
    this.#flusher = loop({ turn: () => this.#flush().then(() => everyMs), onError: options.onError })
  }

  start(): Promise<void> {
    return this.#flusher.start()
  }

  async stop(): Promise<void> {
    await this.#flusher.stop()
    await this.#flush()
  }

  progress(attempt: Attempt, done: number, total: number | undefined, note: string | undefined): void {
    if (attempt.isOver) return
    const problem = progressProblem(done, total)
    if (problem) throw new TypeError(problem)
    this.#progress.set(attempt, {
      fence: attempt.fence,
      done,
      total: total ?? null,
      note: note === undefined ? null : note.replaceAll('\0', '').toWellFormed(),
    })
  }

  log(attempt: Attempt, message: string, data: Record<string, unknown> | undefined): void {
    const count = (this.#lineCounts.get(attempt) ?? 0) + 1
    this.#lineCounts.set(attempt, count)
    if (attempt.isOver || count > mostLinesPerAttempt) return
    const isLast = count === mostLinesPerAttempt
    this.#lines.push({
      fence: attempt.fence,
      data: encodeLine(
        isLast ? 'This attempt has reached its limit of log lines; further lines are dropped.' : message,
        isLast ? undefined : data,
      ),
    })
  }

  /** Writes what this attempt has reported, if anything, so that it is stored before the attempt's outcome. */
  flushFor(attempt: Attempt): Promise<void> | undefined {
    return this.#progress.has(attempt) || this.#lineCounts.has(attempt) ? this.#flush() : undefined
  }

  #flush(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeAll()).catch(this.#options.onError)
    return this.#writing
  }

  async #writeAll(): Promise<void> {
    const reports = [...this.#progress.values()]
    const lines = this.#lines.splice(0)
    this.#progress.clear()
    if (reports.length > 0) await this.#writeProgress(reports).catch(this.#options.onError)
    if (lines.length > 0) await this.#writeLines(lines).catch((error) => this.#keepLines(lines, error))
  }

  async #writeProgress(reports: Progress[]): Promise<void> {
    await this.#writeBatch(reports, 'progress', (runner, some) =>
      runner.run(reportProgress, {
        fences: some.map(({ fence }) => fence),
        done: some.map(({ done }) => done),
        totals: some.map(({ total }) => total),
        notes: some.map(({ note }) => note),
      }),
    )
  }

  async #writeLines(lines: LogLine[]): Promise<void> {
    const held = await this.#writeBatch(lines, 'log', (runner, some) =>
      runner.run(writeLogs, {
        fences: some.map(({ fence }) => fence),
        data: some.map(({ data }) => data),
      }),
    )
    this.#writeLater(held)
  }

  /** A broken connection or a full disk costs no line. If only the answer was lost, lines may be stored twice. */
  #keepLines(lines: LogLine[], error: unknown): void {
    this.#options.onError(error)
    if (isNobodysFault(error)) this.#writeLater(lines)
  }

  #writeLater(lines: LogLine[]): void {
    if (this.#lines.length + lines.length <= mostLinesPerAttempt) this.#lines.unshift(...lines)
  }

  /** Writes reports. A bad or locked row doesn't affect the others. Resolves with the reports on locked rows. */
  async #writeBatch<Report extends { fence: HeldFence }>(
    reports: Report[],
    write: string,
    run: (runner: Runner, some: Report[]) => Promise<{ id: string; attempt: number }[]>,
  ): Promise<Report[]> {
    const told = await runBatch(this.#options.store, {
      items: reports,
      // outcomes wait for the reports of their attempts, and a handler may keep reporting on a locked row
      isWary: performance.now() < this.#waryUntilMs,
      async run(runner, some) {
        // by attempt, because a lost attempt and its successor may report from the same worker
        const written = new Set((await run(runner, some)).map(keyOf))
        return some.map(({ fence }) => written.has(keyOf(fence)))
      },
    })
    const refused = reports.filter((_, index) => isUnwritten(told[index] as Told<boolean>)).map(({ fence }) => fence)
    this.#reportRefused(refused, write)
    for (const one of told) if (one.is === 'refused') this.#options.onError(one.error)
    const held = reports.filter((_, index) => told[index]?.is === 'held')
    if (held.length > 0) this.#waryUntilMs = performance.now() + waryMs
    return held
  }

  /** Reports each refusal once, even if the handler keeps reporting. */
  #reportRefused(fences: HeldFence[], write: string): void {
    const refused = fences.filter((fence) => this.#isFirstRefusal(`${keyOf(fence)} ${write}`))
    if (refused.length > 0) this.#options.onRefused(refused, write)
  }

  #isFirstRefusal(key: string): boolean {
    if (this.#refused.has(key)) return false
    if (this.#refused.size >= mostRefusals) this.#refused.clear()
    this.#refused.add(key)
    return true
  }
}

function keyOf({ id, attempt }: { id: string; attempt: number }): string {
  return `${id} ${attempt}`
}

function isUnwritten(told: Told<boolean>): boolean {
  return told.is === 'done' && !told.answer
}

/** What is wrong with a progress report; undefined if nothing is. */
export function progressProblem(done: unknown, total: unknown): string | undefined {
  if (typeof done !== 'number' || !Number.isFinite(done) || done < 0)
    return `progress(done): done must be a non-negative number, not ${String(done)}.`
  if (total !== undefined && (typeof total !== 'number' || !Number.isFinite(total) || total < 0))
    return `progress(done, total): total must be a non-negative number, not ${String(total)}.`
  return undefined
}

/** A log line as it is stored. Data that can't be stored is dropped, and the line says so. */
export function encodeLine(message: string, data: Record<string, unknown> | undefined): string {
  const text = String(message).replaceAll('\0', '').toWellFormed().slice(0, 10_000)
  if (data === undefined) return JSON.stringify({ message: text })
  const encoded = encodeStorable({ message: text, data }, 'log')
  if ('json' in encoded && encoded.json.length < 100_000) return encoded.json
  return JSON.stringify({
    message: text,
    dropped: 'problem' in encoded ? `${encoded.path} ${encoded.problem}` : 'data is larger than 100,000 characters',
  })
}
