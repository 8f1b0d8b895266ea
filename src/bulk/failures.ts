import { highestId, type JobId } from '../job/id.ts'
import type { TenantScope } from '../job/scope.ts'
import { flagOf, limitOf, mustBeObject, textOf, timeOf } from '../job/validate-argument.ts'
import type { Runner } from '../postgres/store.ts'
import { type FailureRow, type FailureScan, groupFailures, groupFailuresOfTenant } from './failures.sql.ts'

/** Which failed jobs to group. */
export interface FailureOptions extends TenantScope {
  /** Only jobs of this kind. */
  kind?: string
  /** Only jobs that failed at or after this time. */
  since?: Date
  /** Whether to include fan-out items. Default: false. */
  items?: boolean
  /** Maximum number of groups, at most 1000. Default: 50. */
  limit?: number
}

/** Failed jobs of one kind with the same error. */
export interface FailureGroup {
  kind: string
  /** The error code. */
  code: string
  /** The start of the error message, with `#` for numbers and ids, in which messages of the same error differ. */
  message: string
  count: number
  /** When the first and the last of them failed. */
  firstAt: Date
  latestAt: Date
  /** The one that failed last, with its message. */
  latest: { id: JobId; message: string }
}

/** Failed jobs by kind and error. */
export interface Failures {
  /** The most frequent first. */
  groups: FailureGroup[]
  /** How many failed jobs were counted. */
  count: number
  /** Whether there may be more, of each group too: the newest 100,000 jobs are scanned, for up to two seconds, and up to 1,000 errors at a time. */
  isAtLeast: boolean
}

const mostScanned = 100_000
const perScan = 10_000
const mostMs = 2_000
const mostGroups = 10_000

/** Groups failed jobs by kind, error code and message, newest jobs first. Each scan is bounded, and so is the time for all of them. */
export async function failuresOf(store: Runner, options: FailureOptions): Promise<Failures> {
  mustBeObject('options of failures', options)
  const { tenant, kind, since, items = false, limit = 50 } = options
  const scan = {
    tenant: textOf('tenant', tenant),
    kind: textOf('kind', kind),
    endedSince: since === undefined ? null : timeOf('since', since).toISOString(),
    hasItems: flagOf('items', items),
  }
  const most = limitOf(limit, 1000)
  const { groups, leftOut, isAtLeast } = await scanAll(store, scan)
  const sorted = [...groups.values()].sort((a, b) => b.count - a.count || (a.latestAt < b.latestAt ? 1 : -1))
  return { groups: sorted.slice(0, most), count: sorted.reduce((sum, one) => sum + one.count, leftOut), isAtLeast }
}

async function scanAll(store: Runner, scan: Omit<FailureScan, 'below' | 'most'>) {
  const isIndexed = scan.tenant !== null && scan.tenant !== 'default'
  const statement = isIndexed ? groupFailuresOfTenant : groupFailures
  const untilMs = performance.now() + mostMs
  const groups = new Map<string, FailureGroup>()
  let below: string | null = highestId
  let leftOut = 0
  for (let scanned = 0; below !== null && scanned < mostScanned && performance.now() < untilMs; scanned += perScan) {
    const rows: FailureRow[] = await store.run(statement, { ...scan, below, most: perScan })
    for (const row of rows) leftOut += add(groups, row)
    leftOut += rows[0]?.left_out ?? 0
    below = rows[0]?.reached ?? null
  }
  return { groups, leftOut, isAtLeast: below !== null || leftOut > 0 }
}

/** Adds what a scan found to its group, and returns how many jobs found no place because there are too many groups. */
function add(groups: Map<string, FailureGroup>, row: FailureRow): number {
  if (row.kind === null) return 0 // a scan that found none
  const { kind, code, pattern, message } = row
  const key = JSON.stringify([kind, code, pattern])
  const known = groups.get(key)
  if (!known && groups.size >= mostGroups) return row.count
  const isLater = !known || row.latest_at > known.latestAt
  groups.set(key, {
    kind,
    code,
    message: pattern,
    count: (known?.count ?? 0) + row.count,
    firstAt: known && known.firstAt < row.first_at ? known.firstAt : row.first_at,
    latestAt: isLater ? row.latest_at : known.latestAt,
    latest: isLater ? { id: row.latest_id as JobId, message } : known.latest,
  })
  return 0
}
