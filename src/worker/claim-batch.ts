import { type ClaimBatch, separator } from '../transitions/claim.sql.ts'

/** A claimed job. */
export interface ClaimedRow {
  id: string
  /** The session that claimed it, and its slot in the lease. */
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
  /** Whether it runs the `each` of its parent's stage; then `barrierId` is set. */
  is_part: boolean
  barrierId?: string
  submittedAtMs: number
  input: string | null
  outputs: string | null
  trace: string | null
}

/** The size of what a claim returned with a job: its input, and the outputs of its earlier stages. */
export function sizeOf({ input, outputs }: ClaimedRow): number {
  return (input?.length ?? 0) + (outputs?.length ?? 0)
}

/** Frees the memory of what no one will read again. */
export function dropTexts(row: ClaimedRow): void {
  row.input = null
  row.outputs = null
}

/** The jobs of these batches, by priority and then by age. A claim returns them in no particular order. */
export function rowsOf(batches: ClaimBatch[], sessionId: number): ClaimedRow[] {
  return batches
    .flatMap((batch) => unpacked(batch, sessionId))
    .sort((a, b) => a.priority - b.priority || (a.id < b.id ? -1 : 1))
}

function unpacked(batch: ClaimBatch, sessionId: number): ClaimedRow[] {
  const ids = batch.ids.slice(1, -1).split(',')
  const inputs = batch.inputs === null ? [] : batch.inputs.split(separator)
  const slots = batch.slots === null ? (index: number) => index : listOf(batch.slots)
  const tenants = textsOf(batch.tenants)
  const submitted = listOf(batch.submitted)
  const rows = ids.map((id, index): ClaimedRow => {
    return {
      id,
      sessionId,
      leaseId: batch.lease_id,
      slot: Number(slots(index)),
      leaseSize: batch.lease_size,
      kind: batch.kind,
      tenant: tenants(index),
      priority: batch.priority,
      stage: batch.stage,
      attempt: 1,
      failures: 0,
      crashes: 0,
      is_part: false,
      submittedAtMs: Number(submitted(index)),
      input: inputs[index] ?? null,
      outputs: batch.outputs,
      trace: batch.trace,
    }
  })
  if (batch.attempts ?? batch.failures ?? batch.crashes ?? batch.parts) addNumbers(batch, rows)
  return rows
}

/** What few jobs have: earlier attempts, failures or crashes, or a barrier. */
function addNumbers(batch: ClaimBatch, rows: ClaimedRow[]): void {
  const attempts = listOf(batch.attempts ?? '1')
  const failures = listOf(batch.failures ?? '0')
  const crashes = listOf(batch.crashes ?? '0')
  const parts = listOf(batch.parts ?? 'NULL')
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

/** Reads a list of numbers or ids as Postgres writes it, or a value that all have in common. */
function listOf(text: string): (index: number) => string {
  if (!text.startsWith('{')) return () => text
  const values = text.slice(1, -1).split(',')
  return (index) => values[index] as string
}

/** The same for strings, some of which Postgres puts in quotes. */
function textsOf(text: string): (index: number) => string {
  if (!text.startsWith('{')) return () => text
  const values = [...text.slice(1, -1).matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)].map(([, quoted, plain]) =>
    quoted === undefined ? (plain as string) : quoted.replace(/\\(.)/g, '$1'),
  )
  return (index) => values[index] as string
}
