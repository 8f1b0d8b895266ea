import { boundOf } from '../reaper/recovery-bound.ts'
import type { Cell, CellOutcome } from './cell.ts'
import { type FaultName, faultNames } from './faults.ts'
import type { PlannedEntry, Survey } from './plan.ts'
import { boundFor, cellConfig, cellSettings, readerBoundMs } from './settings.ts'

/** A cell that was run, with its outcome. */
export interface CellRun {
  cell: Cell
  outcome: CellOutcome
  /** The recovery times of earlier runs that exceeded the bound. After the first one, the cell was run alone. */
  lateMs: number[]
}

/** One entry of the matrix. */
export type Entry = { isPassed: boolean; recoveryMs: number | null; tries: number } | { reason: string }

/** A violation that the proof found. */
export interface ProofViolation {
  /** The cell as `--cell` takes it; null if it belongs to no cell. */
  cell: string | null
  seed: number
  wrongs: string[]
  /** The command that reproduces it. */
  reproduce: string
}

/** The result of a proof. */
export interface ProofReport {
  cells: number
  passed: number
  violations: ProofViolation[]
  recoveryMs: { p50: number | null; p99: number | null; max: number | null }
  boundMs: number
  /** The bounds for what is not a job: cursors of readers, and webhooks whose sender died while sending. */
  busBoundMs: { readers: number; webhooks: number }
  matrix: Record<string, Partial<Record<FaultName, Entry>>>
  /** Declared statements that no scenario sends; each is a violation. */
  notCovered: string[]
  /** Cells that were late next to others. Only their last run, alone, counts. */
  late: { cell: string; seed: number; recoveryMs: number; aloneMs: (number | null)[] }[]
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

/** Summarizes a proof. */
export function reportOf(facts: {
  survey: Survey
  entries: PlannedEntry[]
  runs: CellRun[]
  seed: number
  isQuick: boolean
  restartIs: string
  seconds: number
}): ProofReport {
  const { survey, runs, seed } = facts
  const recoveries = runs.flatMap(({ outcome }) => outcome.recoveryMs ?? []).sort((a, b) => a - b)
  const passed = runs.filter(isPassed)
  return {
    cells: runs.length,
    passed: passed.length,
    violations: [
      ...runs.filter((run) => !isPassed(run)).map(violationOf),
      ...[
        ...survey.wrongs,
        ...survey.notCovered.map((name) => `the statement ${name} is not covered by any scenario`),
      ].map((wrong) => ({ cell: null, seed, wrongs: [wrong], reproduce: `holdfast prove --seed ${seed} --quick` })),
    ],
    recoveryMs: { p50: quantile(recoveries, 0.5), p99: quantile(recoveries, 0.99), max: quantile(recoveries, 1) },
    boundMs: boundOf(cellConfig()),
    busBoundMs: { readers: readerBoundMs, webhooks: boundFor('claim ran out') },
    matrix: matrixOf(facts.entries, runs),
    notCovered: survey.notCovered,
    late: runs.filter(({ lateMs }) => lateMs.length > 0).map(lateOf),
    isQuick: facts.isQuick,
    restartIs: facts.restartIs,
    settings: cellSettings,
    seed,
    seconds: Math.round(facts.seconds * 10) / 10,
  }
}

function isPassed({ outcome }: CellRun): boolean {
  return outcome.wrongs.length === 0
}

function nameOf({ statement, fault, occurrence }: Cell): string {
  return `${statement} × ${fault} × ${occurrence}`
}

function lateOf({ cell, outcome, lateMs }: CellRun): ProofReport['late'][number] {
  const [recoveryMs = 0, ...aloneMs] = [...lateMs, outcome.recoveryMs].map((ms) =>
    ms === null ? null : Math.round(ms),
  )
  return { cell: nameOf(cell), seed: cell.seed, recoveryMs: recoveryMs ?? 0, aloneMs }
}

function violationOf({ cell, outcome }: CellRun): ProofViolation {
  const name = nameOf(cell)
  return {
    cell: name,
    seed: cell.seed,
    wrongs: outcome.wrongs,
    reproduce: `holdfast prove --seed ${cell.seed} --cell "${name}"`,
  }
}

function matrixOf(entries: PlannedEntry[], runs: CellRun[]): ProofReport['matrix'] {
  const matrix: ProofReport['matrix'] = {}
  for (const planned of [...entries].sort((a, b) => a.statement.localeCompare(b.statement))) {
    const entry = 'reason' in planned ? { reason: planned.reason } : entryOf(planned, runs)
    matrix[planned.statement] = { ...matrix[planned.statement], [planned.fault]: entry }
  }
  return matrix
}

function entryOf({ statement, fault }: { statement: string; fault: FaultName }, runs: CellRun[]): Entry {
  const mine = runs.filter(({ cell }) => cell.statement === statement && cell.fault === fault)
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

/** The report as text. */
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
        `Late while other cells were running, so run again alone: ${cell} (${ms} ms, alone ${aloneMs.join(' ms, then ')} ms).`,
    ),
    ...report.violations.flatMap(({ cell, wrongs, reproduce }) => [
      '',
      `✗ ${cell ?? 'outside of any cell'}`,
      ...wrongs.map((wrong) => `    ${wrong}`),
      `    reproduce: ${reproduce}`,
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
    'Each number: milliseconds from the fault until every job and cursor that it hit had moved again. –: does not apply, or left to the full proof.',
  ]
}

function mark(entry: Entry | undefined): string {
  if (!entry || 'reason' in entry) return '–'
  if (entry.tries === 0) return '·'
  return `${entry.isPassed ? '✓' : '✗'} ${entry.recoveryMs ?? ''}`.trimEnd()
}
