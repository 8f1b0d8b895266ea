import type { Runner } from '../store/store.ts'
import { checks, type Invariant, tableSizes } from './audit.sql.ts'

/** One broken invariant. */
export interface Violation {
  invariant: Invariant
  /** How many rows break it. */
  total: number
  /** The first of them. */
  examples: { subject: string; found: string }[]
}

/** What an audit found. */
export interface Audit {
  violations: Violation[]
  checked: Invariant[]
  /** How many rows there are, about. */
  sizes: { live: number; finished: number; events: number }
  ms: number
}

/** The names of all invariants. */
export const invariants = Object.keys(checks) as Invariant[]

/** Checks every invariant of a live database. Reads only; each check is one statement, and so sees one moment. */
export async function audit(store: Runner, scope: { boundMs: number; latest: number | null }): Promise<Audit> {
  const startedMs = performance.now()
  const violations: Violation[] = []
  for (const invariant of invariants) {
    const rows = await store.run(checks[invariant], scope)
    if (rows.length === 0) continue
    const examples = rows.map(({ subject, found }) => ({ subject, found }))
    violations.push({ invariant, total: rows[0]?.total ?? rows.length, examples })
  }
  const [sizes] = await store.run(tableSizes, {})
  return {
    violations,
    checked: invariants,
    sizes: sizes ?? { live: 0, finished: 0, events: 0 },
    ms: Math.round(performance.now() - startedMs),
  }
}
