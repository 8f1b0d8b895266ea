import { type ClaimedLot, separator } from './claim.sql.ts'

/** A claimed job. */
export interface ClaimedRow {
  id: string
  /** The session in whose name it was claimed, and its place in the lease that came of it. */
  sessionId: number
  leaseId: number
  slot: number
  leaseSize: number
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

function unpacked(lot: ClaimedLot, sessionId: number): ClaimedRow[] {
  const ids = lot.ids.slice(1, -1).split(',')
  const inputs = lot.inputs === null ? [] : lot.inputs.split(separator)
  const slots = listOf(lot.slots)
  const tenants = textsOf(lot.tenants)
  const submitted = listOf(lot.submitted)
  const priorities = listOf(lot.priorities)
  const rows = ids.map((id, index): ClaimedRow => {
    return {
      id,
      sessionId,
      leaseId: lot.lease_id,
      slot: Number(slots(index)),
      leaseSize: lot.lease_size,
      kind: lot.kind,
      tenant: tenants(index),
      priority: Number(priorities(index)),
      stage: lot.stage,
      attempt: 1,
      failures: 0,
      crashes: 0,
      is_part: false,
      submittedAtMs: Number(submitted(index)),
      input: inputs[index] ?? null,
      outputs: lot.outputs,
      trace: lot.trace,
    }
  })
  if (lot.attempts ?? lot.failures ?? lot.crashes ?? lot.parts) addNumbers(lot, rows)
  return rows
}

/** What few jobs have: they are not the first attempt, have failed or crashed before, or run a part. */
function addNumbers(lot: ClaimedLot, rows: ClaimedRow[]): void {
  const attempts = listOf(lot.attempts ?? '1')
  const failures = listOf(lot.failures ?? '0')
  const crashes = listOf(lot.crashes ?? '0')
  const parts = listOf(lot.parts ?? 'NULL')
  for (const [index, row] of rows.entries()) {
    row.attempt = Number(attempts(index))
    row.failures = Number(failures(index))
    row.crashes = Number(crashes(index))
    const barrierId = parts(index)
    if (barrierId === 'NULL') continue
    row.is_part = true
    row.barrierId = barrierId
  }
}

/** A list of numbers or ids as Postgres writes it, or the one that all have. */
function listOf(text: string): (index: number) => string {
  if (!text.startsWith('{')) return () => text
  const values = text.slice(1, -1).split(',')
  return (index) => values[index] as string
}

/** The same for texts. A tenant has no quote or backslash in it, but may have what makes Postgres put it into quotes. */
function textsOf(text: string): (index: number) => string {
  if (!text.startsWith('{')) return () => text
  const values = [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)].map(([, quoted, plain]) =>
    quoted === undefined ? (plain as string) : quoted.replace(/\\(.)/g, '$1'),
  )
  return (index) => values[index] as string
}
