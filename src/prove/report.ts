import { boundOf } from '../reaper/bound.ts'
import type { Cell, CellOutcome } from './cell.ts'
import { type FaultName, faultNames } from './faults.ts'
import type { Place, Survey } from './plan.ts'
import { boundFor, cellConfig, cellSettings, readerBoundMs } from './settings.ts'

/** A cell that was run, with what became of it. */
export interface Tried {
  cell: Cell
  outcome: CellOutcome
  /** How long it took among others, where that was past its bound, so that it was tried once more alone. */
  lateMs?: number | null
}

/** What stands in one place of the matrix. */
export type Entry = { isPassed: boolean; recoveryMs: number | null; tries: number } | { reason: string }

/** Something that the proof found wrong. */
export interface ProofViolation {
  /** The cell as `--cell` takes it; null for what no cell shows. */
  cell: string | null
  seed: number
  wrongs: string[]
  /** The command that shows it again. */
  reproduce: string
}

/** The outcome of a proof. */
export interface ProofReport {
  cells: number
  passed: number
  violations: ProofViolation[]
  recoveryMs: { p50: number | null; p99: number | null; max: number | null }
  boundMs: number
  /** The bounds of what is no job: cursors of readers, and webhooks whose sender died while it sent. */
  busBoundMs: { readers: number; webhooks: number }
  matrix: Record<string, Partial<Record<FaultName, Entry>>>
  /** Declared statements that no scenario provokes; each is a violation. */
  notCovered: string[]
  /** Cells that were late among others; what counts is how they did alone. */
  late: { cell: string; seed: number; recoveryMs: number; aloneMs: number | null }[]
  isQuick: boolean
  restartIs: string
  settings: typeof cellSettings
  seed: number
  seconds: number
}

/** Whether the proof holds. */
export function holds(report: ProofReport): boolean {
  return report.violations.length === 0 && report.passed === report.cells
}

/** Sums a proof up. */
export function reportOf(facts: {
  survey: Survey
  places: Place[]
  tried: Tried[]
  seed: number
  isQuick: boolean
  restartIs: string
  seconds: number
}): ProofReport {
  const { survey, tried, seed } = facts
  const recoveries = tried.flatMap(({ outcome }) => outcome.recoveryMs ?? []).sort((a, b) => a - b)
  const passed = tried.filter(isPassed)
  return {
    cells: tried.length,
    passed: passed.length,
    violations: [
      ...tried.filter((one) => !isPassed(one)).map(violationOf),
      ...[
        ...survey.wrongs,
        ...survey.notCovered.map((name) => `the statement ${name} is not covered by any scenario`),
      ].map((wrong) => ({ cell: null, seed, wrongs: [wrong], reproduce: `holdfast prove --seed ${seed} --quick` })),
    ],
    recoveryMs: { p50: quantile(recoveries, 0.5), p99: quantile(recoveries, 0.99), max: quantile(recoveries, 1) },
    boundMs: boundOf(cellConfig()),
    busBoundMs: { readers: readerBoundMs, webhooks: boundFor('claim ran out') },
    matrix: matrixOf(facts.places, tried),
    notCovered: survey.notCovered,
    late: tried.filter(({ lateMs }) => lateMs != null).map(lateOf),
    isQuick: facts.isQuick,
    restartIs: facts.restartIs,
    settings: cellSettings,
    seed,
    seconds: Math.round(facts.seconds * 10) / 10,
  }
}

function isPassed({ outcome }: Tried): boolean {
  return outcome.wrongs.length === 0
}

function nameOf({ statement, fault, occurrence }: Cell): string {
  return `${statement} × ${fault} × ${occurrence}`
}

function lateOf({ cell, outcome, lateMs }: Tried): ProofReport['late'][number] {
  const aloneMs = outcome.recoveryMs === null ? null : Math.round(outcome.recoveryMs)
  return { cell: nameOf(cell), seed: cell.seed, recoveryMs: Math.round(lateMs ?? 0), aloneMs }
}

function violationOf({ cell, outcome }: Tried): ProofViolation {
  const name = nameOf(cell)
  return {
    cell: name,
    seed: cell.seed,
    wrongs: outcome.wrongs,
    reproduce: `holdfast prove --seed ${cell.seed} --cell "${name}"`,
  }
}

function matrixOf(places: Place[], tried: Tried[]): ProofReport['matrix'] {
  const matrix: ProofReport['matrix'] = {}
  for (const place of [...places].sort((a, b) => a.statement.localeCompare(b.statement))) {
    const entry = 'reason' in place ? { reason: place.reason } : entryOf(place, tried)
    matrix[place.statement] = { ...matrix[place.statement], [place.fault]: entry }
  }
  return matrix
}

function entryOf(place: { statement: string; fault: FaultName }, tried: Tried[]): Entry {
  const mine = tried.filter(({ cell }) => cell.statement === place.statement && cell.fault === place.fault)
  const recoveries = mine.flatMap(({ outcome }) => outcome.recoveryMs ?? [])
  return {
    isPassed: mine.every(isPassed),
    recoveryMs: recoveries.length > 0 ? Math.round(Math.max(...recoveries)) : null,
    tries: mine.length,
  }
}

function quantile(sorted: number[], share: number): number | null {
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  return value === undefined ? null : Math.round(value)
}

/** The report as a person reads it. */
export function textOf(report: ProofReport): string {
  const { recoveryMs, boundMs, busBoundMs } = report
  const ms = (value: number | null) => (value === null ? '–' : `${value} ms`)
  return [
    ...matrixLines(report.matrix),
    '',
    `${report.passed} of ${report.cells} cells passed in ${report.seconds} s (seed ${report.seed}).`,
    `Recovered in p50 ${ms(recoveryMs.p50)}, p99 ${ms(recoveryMs.p99)}, max ${ms(recoveryMs.max)}; the bound under these settings is ${boundMs} ms for jobs, ${busBoundMs.readers} ms for readers, ${busBoundMs.webhooks} ms for webhooks.`,
    `A restart is ${report.restartIs}.`,
    ...report.late.map(
      ({ cell, recoveryMs: ms, aloneMs }) =>
        `Late among others, so tried again alone: ${cell} (${ms} ms, alone ${aloneMs} ms).`,
    ),
    ...report.violations.flatMap(({ cell, wrongs, reproduce }) => [
      '',
      `✗ ${cell ?? 'not a single cell'}`,
      ...wrongs.map((wrong) => `    ${wrong}`),
      `    again: ${reproduce}`,
    ]),
  ].join('\n')
}

function matrixLines(matrix: ProofReport['matrix']): string[] {
  const shown = faultNames.filter((fault) => Object.values(matrix).some((row) => row[fault] && 'tries' in row[fault]))
  const width = Math.max(9, ...Object.keys(matrix).map((name) => name.length)) + 2
  const columns = shown.map((fault) => Math.max(fault.length, 8) + 2)
  const line = (first: string, cells: string[]) =>
    (first.padEnd(width) + cells.map((cell, index) => cell.padStart(columns[index] ?? 0)).join('')).trimEnd()
  return [
    line('statement', shown),
    ...Object.entries(matrix).map(([statement, row]) =>
      line(
        statement,
        shown.map((fault) => mark(row[fault])),
      ),
    ),
    '',
    'Each number: milliseconds from the fault until every job and cursor that it hit had moved again. –: makes no sense, or left to the full proof.',
  ]
}

function mark(entry: Entry | undefined): string {
  if (!entry || 'reason' in entry) return '–'
  if (entry.tries === 0) return '·'
  return `${entry.isPassed ? '✓' : '✗'} ${entry.recoveryMs ?? ''}`.trimEnd()
}
