import pg from 'pg'
import { type ClaimedLot, separator, usualPriority } from './claim.sql.ts'

/** A claimed job. */
export interface ClaimedRow {
  id: string
  kind: string
  tenant: string
  priority: number
  stage: number
  attempt: number
  failures: number
  crashes: number
  is_part: boolean
  submittedAtMs: number
  input: string | null
  outputs: string | null
  trace: string | null
}

/** The jobs of these lots, urgent ones first: a claim answers in no order of its own. */
export function rowsOf(lots: ClaimedLot[]): ClaimedRow[] {
  return lots.flatMap(unpacked).sort((a, b) => a.priority - b.priority)
}

function unpacked(lot: ClaimedLot): ClaimedRow[] {
  const kinds = lot.kinds.split(separator)
  const tenants = lot.tenants.split(separator)
  const submitted = lot.submitted.split(separator)
  const numbers = lot.numbers.split(separator)
  const inputs = lot.inputs === null ? [] : lot.inputs.split(separator)
  const ids = lot.ids.slice(1, -1).split(',')
  return ids.map((id, index) => {
    const row: ClaimedRow = {
      id,
      kind: kinds[index] as string,
      tenant: tenants[index] as string,
      priority: usualPriority,
      stage: 0,
      attempt: 1,
      failures: 0,
      crashes: 0,
      is_part: false,
      submittedAtMs: msOf(submitted[index] as string),
      input: inputs[index] ?? null,
      outputs: lot.outputs,
      trace: lot.trace,
    }
    const given = numbers[index] as string
    return given === '' ? row : withNumbers(row, given)
  })
}

function withNumbers(row: ClaimedRow, given: string): ClaimedRow {
  const [priority, stage, attempt, failures, crashes, isPart] = given.split(',')
  return {
    ...row,
    priority: Number(priority),
    stage: Number(stage),
    attempt: Number(attempt),
    failures: Number(failures),
    crashes: Number(crashes),
    is_part: isPart === 't',
  }
}

const parseTime = pg.types.getTypeParser(pg.types.builtins.TIMESTAMPTZ) as (text: string) => Date
let lastTime = { text: '', ms: 0 }

/** The time in a text. Jobs of one bulk submit have the same, so the last one is remembered. */
function msOf(text: string): number {
  if (text !== lastTime.text) lastTime = { text, ms: parseTime(text).getTime() }
  return lastTime.ms
}
