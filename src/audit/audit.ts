import { isCancelled } from '../store/connection.ts'
import type { Store } from '../store/store.ts'
import { checks, type Invariant, tableSizes } from './audit.sql.ts'
import { limitCheck, type ViolationRow } from './check.sql.ts'

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
  /** The invariants that were looked at to the end. */
  checked: Invariant[]
  /** Those that took longer than a check may take: of them nothing is known. */
  unfinished: Invariant[]
  /** How many rows there are, about. */
  sizes: { live: number; finished: number; events: number }
  ms: number
}

/** How far to look. */
export interface AuditOptions {
  /** How old an orphan may be before it is a violation. */
  boundMs: number
  /** How many of the latest jobs are checked where it takes a look at each; null for all. */
  latest: number | null
  /** How long one check may take. */
  budgetMs: number
  /** Told before each check. */
  onCheck?: (invariant: Invariant, place: { number: number; of: number }) => void
}

/** Where checks are run: each in a transaction of its own, so that its limit of time ends with it. */
type Auditable = Omit<Store, 'close'>

/** The names of all invariants. */
export const invariants = Object.keys(checks) as Invariant[]

/** Checks every invariant of a live database. Reads only; each check is one statement, and so sees one moment. One that takes too long is given up, and the next one begins. */
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
