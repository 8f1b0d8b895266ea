import { type ClaimedLot, separator, usualPriority } from './claim.sql.ts'

/** A claimed job. */
export interface ClaimedRow {
  id: string
  /** The session in whose name it was claimed. */
  sessionId: number
  kind: string
  tenant: string
  priority: number
  stage: number
  attempt: number
  failures: number
  crashes: number
  /** Whether it runs the `each` of its parent's stage; then its barrier is told, too. */
  is_part: boolean
  barrierId?: string
  submittedAtMs: number
  input: string | null
  outputs: string | null
  trace: string | null
}

/** The jobs of these lots, urgent ones first, and among those the oldest: a claim answers in no order of its own. */
export function rowsOf(lots: ClaimedLot[], sessionId: number): ClaimedRow[] {
  return lots
    .flatMap((lot) => unpacked(lot, sessionId))
    .sort((a, b) => a.priority - b.priority || (a.id < b.id ? -1 : 1))
}

// a time in seconds is a little off in its last digit
const roundingMs = 0.001

function unpacked(lot: ClaimedLot, sessionId: number): ClaimedRow[] {
  const kinds = lot.kinds.split(separator)
  const tenants = lot.tenants.split(separator)
  const submitted = lot.submitted.split(separator)
  const numbers = lot.numbers.split(separator)
  const inputs = lot.inputs === null ? [] : lot.inputs.split(separator)
  const ids = lot.ids.slice(1, -1).split(',')
  return ids.map((id, index) => {
    const row: ClaimedRow = {
      id,
      sessionId,
      kind: kinds[index] as string,
      tenant: tenants[index] as string,
      priority: usualPriority,
      stage: 0,
      attempt: 1,
      failures: 0,
      crashes: 0,
      is_part: false,
      submittedAtMs: Math.floor(Number(submitted[index]) * 1000 + roundingMs),
      input: inputs[index] ?? null,
      outputs: lot.outputs,
      trace: lot.trace,
    }
    const given = numbers[index] as string
    return given === '' ? row : withNumbers(row, given)
  })
}

function withNumbers(row: ClaimedRow, given: string): ClaimedRow {
  const [priority, stage, attempt, failures, crashes, barrierId] = given.split(',')
  return {
    ...row,
    priority: Number(priority),
    stage: Number(stage),
    attempt: Number(attempt),
    failures: Number(failures),
    crashes: Number(crashes),
    is_part: barrierId !== undefined,
    ...(barrierId !== undefined && { barrierId }),
  }
}
