import { isCancelled } from '../postgres/connection.ts'
import type { Store } from '../postgres/store.ts'
import { checks, type Invariant, tableSizes } from './audit.sql.ts'
import { limitCheck, type ViolationRow } from './check.sql.ts'

/** One broken invariant. */
export interface Violation {
  invariant: Invariant
  /** How many rows break it. */
  total: number
  /** Some of them. */
  examples: { subject: string; found: string }[]
}

/** What an audit found. */
export interface Audit {
  violations: Violation[]
  /** The invariants whose check finished. */
  checked: Invariant[]
  /** Those whose check took too long, so that nothing is known about them. */
  unfinished: Invariant[]
  /** Approximate row counts. */
  sizes: { live: number; finished: number; events: number }
  ms: number
}

/** How much to check. */
export interface AuditOptions {
  /** How old an orphan may be before it is a violation. */
  boundMs: number
  /** How many of the latest jobs to check where each needs a lookup; null for all. */
  latest: number | null
  /** How long one check may take. */
  budgetMs: number
  /** Called before each check. */
  onCheck?: (invariant: Invariant, progress: { number: number; of: number }) => void
}

/** Where checks run: each in a transaction of its own, so that its time limit ends with it. */
type Auditable = Pick<Store, 'run' | 'transaction'>

/** The names of all invariants. */
export const invariants = Object.keys(checks) as Invariant[]

/** Checks every invariant of a live database, read-only. Each check is one statement, so it sees one snapshot. A check that takes too long is skipped. */
export async function audit(store: Auditable, options: AuditOptions): Promise<Audit> {
  const startedMs = performance.now()
  const violations: Violation[] = []
  const unfinished: Invariant[] = []
  for (const [index, invariant] of invariants.entries()) {
    options.onCheck?.(invariant, { number: index + 1, of: invariants.length })
    const rows = await checkOne(store, invariant, options)
    if (rows === 'too slow') unfinished.push(invariant)
    else if (rows.length > 0) violations.push(violationOf(invariant, rows))
  }
  const [sizes] = await store.run(tableSizes, {})
  return {
    violations,
    checked: invariants.filter((invariant) => !unfinished.includes(invariant)),
    unfinished,
    sizes: sizes ?? { live: 0, finished: 0, events: 0 },
    ms: Math.round(performance.now() - startedMs),
  }
}

async function checkOne(
  store: Auditable,
  invariant: Invariant,
  { boundMs, latest, budgetMs }: AuditOptions,
): Promise<ViolationRow[] | 'too slow'> {
  try {
    return await store.transaction(async (runner) => {
      await runner.run(limitCheck, { budgetMs })
      return runner.run(checks[invariant], { boundMs, latest })
    })
  } catch (error) {
    if (isCancelled(error)) return 'too slow'
    throw error
  }
}

function violationOf(invariant: Invariant, rows: ViolationRow[]): Violation {
  const examples = rows.map(({ subject, found }) => ({ subject, found }))
  return { invariant, total: rows[0]?.total ?? rows.length, examples }
}
