import pg from 'pg'
import { advanceJobs, failJobs, finishJobs, releaseJobs, retryJobs } from '#holdfast/settle/settle.sql'
import { type Sql, textOf } from '#holdfast/store/sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import { lostAttempts } from '#holdfast/worker/claim.sql'
import type { ClaimedRow } from '#holdfast/worker/lot'
import { expect, test } from './fixtures.ts'
import { queuedCrowd } from './places.ts'

/** A node of a plan, as EXPLAIN tells it. */
interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'CTE Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  Plans?: Plan[]
}

const size = 1_500

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

/** Walks of tables that may be large, and of what a statement was given for every row that it looks at. */
function walksOf(plan: Plan): string[] {
  return nodesOf(plan)
    .filter(
      (node) =>
        (node['Node Type'] === 'Seq Scan' && /^(job|ready|outcome)$/.test(node['Relation Name'] ?? '')) ||
        (node['Node Type'] === 'CTE Scan' && node['Actual Loops'] > 10),
    )
    .map(
      (node) => `${node['Node Type']} of ${node['Relation Name'] ?? node['CTE Name']}, ${node['Actual Loops']} times`,
    )
}

/** A plan in a line per node, for whoever reads why it is bad. */
function briefly(plan: Plan, depth = 0): string[] {
  const own = `${' '.repeat(depth)}${plan['Node Type']} ${plan['Relation Name'] ?? plan['CTE Name'] ?? ''}: ${plan['Actual Rows']} rows, ${plan['Actual Loops']} times`
  return [own, ...(plan.Plans ?? []).flatMap((inner) => briefly(inner, depth + 1))]
}

const literal = (value: unknown) => (value === null ? 'null' : pg.escapeLiteral(String(value)))

/** The statements that name many attempts of a worker at once. */
function statementsOf(claimed: ClaimedRow[]): Record<string, Sql> {
  const fences = claimed.map(heldFenceOf)
  const ended = { fences, outputs: fences.map(() => '1'), stageNames: fences.map(() => 'one') }
  const erred = { fences, errors: fences.map(() => '{}') }
  return {
    'job.finish': finishJobs.build(ended),
    'job.fail': failJobs.build(erred),
    'job.advance': advanceJobs.build(ended),
    'job.retry': retryJobs.build({ ...erred, delaysMs: fences.map(() => 0) }),
    'job.release': releaseJobs.build({ fences }),
    'attempt.lost': lostAttempts.build({ fences }),
  }
}

/** Runs a statement under EXPLAIN and undoes it. */
async function planOf(client: pg.Client, piece: Sql, mode: string): Promise<Plan> {
  await client.query(`set plan_cache_mode = ${mode}; deallocate all`)
  await client.query(`prepare probe as ${textOf(piece)}`)
  await client.query('begin')
  const values = piece.values.map(literal).join(', ')
  const { rows } = await client.query(`explain (analyze, format json) execute probe(${values})`)
  await client.query('rollback')
  return rows[0]['QUERY PLAN'][0].Plan
}

/** When the statistics of the table were taken; they stay as they were then. */
const statistics: Record<string, { before?: string; after?: string }> = {
  'when all jobs were queued': { after: 'analyze holdfast.job, holdfast.ready, holdfast.lease, holdfast.outcome' },
  'when there was no job': { before: 'analyze holdfast.job, holdfast.ready, holdfast.lease, holdfast.outcome' },
  never: { after: `update pg_class set reltuples = -1, relpages = 0 where relname in ('job', 'ready', 'lease', 'outcome')` },
}

const cases = Object.keys(statistics).flatMap((taken) => [
  { taken, jobs: size, batch: size },
  { taken, jobs: 10 * size, batch: size },
  { taken, jobs: 10 * size, batch: 20 },
])

test.for(cases)(
  'a settle of $batch of $jobs jobs walks no table, with statistics taken $taken',
  {
    timeout: 120_000,
  },
  async ({ taken, jobs, batch }, { url, query, given }) => {
    for (const table of ['job', 'ready', 'lease', 'outcome']) await query(`alter table holdfast.${table} set (autovacuum_enabled = off)`)
    await query(statistics[taken]?.before ?? '')
    await query(queuedCrowd({ count: jobs, queue: `'mine'` }))
    await query(statistics[taken]?.after ?? '')
    const sessionId = await given.session()
    const claimed = await given.claim({ sessionId, queue: 'mine', most: batch })
    expect(claimed).toHaveLength(batch)
    const client = new pg.Client(url)
    await client.connect()
    for (const mode of ['force_generic_plan', 'force_custom_plan'])
      for (const [name, piece] of Object.entries(statementsOf(claimed))) {
        const plan = await planOf(client, piece, mode)
        const shown = `${name}, ${mode}:\n${briefly(plan).join('\n')}`
        expect.soft(walksOf(plan), shown).toEqual([])
      }
    await client.end()
  },
)
