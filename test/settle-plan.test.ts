import pg from 'pg'
import type { HeldFence } from '#holdfast/job/id'
import { type Sql, textOf } from '#holdfast/postgres/sql'
import { reviveJobs } from '#holdfast/reaper/revive.sql'
import { advanceJobs, failJobs, finishJobs, releaseJobs, retryJobs } from '#holdfast/settle/settle.sql'
import { masksOf } from '#holdfast/transitions/leases.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import { fenceOfHeld, lostAttempts, unheldAttempts } from '#holdfast/worker/claim.sql'
import type { ClaimedRow } from '#holdfast/worker/claim-batch'
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
    'attempt.unheld': unheldAttempts.build({ sessionId: fences[0]?.sessionId ?? 0, ...masksOf(fences.slice(1)) }),
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
  'when all jobs were queued': { after: 'analyze holdfast.job, holdfast.ready, holdfast.lease' },
  'when there was no job': { before: 'analyze holdfast.job, holdfast.ready, holdfast.lease' },
  never: {
    after: `update pg_class set reltuples = -1, relpages = 0 where relname in ('job', 'ready', 'lease')`,
  },
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
    for (const table of ['job', 'ready', 'lease', 'outcome'])
      await query(`alter table holdfast.${table} set (autovacuum_enabled = off)`)
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

/** Leases of other workers, each with a range of ids that any job may be in. */
const otherLeases = (count: number) => `
  insert into holdfast.lease (session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, job_ids)
  select 0, now() + interval '1 h', now(), '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 0, 2, 'sample', 'other', 'default', '0',
    array[gen_random_uuid()]
  from generate_series(1, ${count})`

test('jobs that fail or are revived, with all that is kept about them, cost the same however many leases there are', async ({
  url,
  query,
  given,
}) => {
  await query(otherLeases(1_000))
  await query(queuedCrowd({ count: 300, queue: `'mine'` }))
  const sessionId = await given.session()
  const fences = (await given.claim({ sessionId, queue: 'mine', most: 300 })).map(heldFenceOf)
  const orphans = fences.map(({ id, attempt, leaseId, slot, leaseSize }) => ({
    ...{ id, attempt, kind: 'sample', session_id: sessionId, stage: 0, lease_id: leaseId, slot, size: leaseSize },
    ...{ rung: 'lock gone', lost_ms: 0, is_spent: false },
  }))
  await query(`update holdfast.session set ended_at = now(), ended_by = 'lock gone' where id = $1`, [sessionId])
  const client = new pg.Client(url)
  await client.connect()
  const pieces = [failJobs.build({ fences, errors: fences.map(() => '{}') }), reviveJobs.build({ orphans })]
  for (const piece of pieces) {
    await client.query('begin')
    await client.query(textOf(piece), [...piece.values])
    const { rows } = await client.query(
      `select seq_tup_read + coalesce(idx_tup_fetch, 0) as leases, (select count(*) from holdfast.snapshot)
      from pg_stat_xact_user_tables where relname = 'lease'`,
    )
    await client.query('rollback')
    expect(Number(rows[0].count)).toBe(300)
    expect(Number(rows[0].leases)).toBeLessThan(1_000)
  }
  await client.end()
})

test('what a worker does not know of is found at the cost of its own leases, however many those are', async ({
  query,
  given,
  store,
}) => {
  await query(queuedCrowd({ count: 3_000, queue: `'mine'` }))
  const sessionId = await given.session()
  const fences: HeldFence[] = []
  while (fences.length < 2_000) fences.push(...(await given.claim({ sessionId, queue: 'mine' })).map(heldFenceOf))
  fences.push(...(await given.claim({ sessionId, queue: 'mine', most: 1_000 })).map(heldFenceOf))
  const unknown = new Set([0, 1_999, 2_000, 2_500].map((index) => fences[index]?.id))
  const known = fences.filter(({ id }) => !unknown.has(id))
  const startedMs = performance.now()
  const unheld = await store.run(unheldAttempts, { sessionId, ...masksOf(known) })
  const tookMs = performance.now() - startedMs
  expect(new Set(unheld.map(({ id }) => id))).toEqual(unknown)
  expect(unheld.map(fenceOfHeld)).toEqual(expect.arrayContaining(fences.filter(({ id }) => unknown.has(id))))
  console.log(`what 2,001 leases hold: ${tookMs.toFixed(1)} ms`)
  expect(tookMs).toBeLessThan(500)
})

test('a job that was given back and claimed again is not taken for the attempt that its worker still knows', async ({
  given,
  store,
}) => {
  const known = await given.running()
  const { sessionId, queue } = known
  await store.run(releaseJobs, { fences: [known] })
  const [again] = await given.claim({ sessionId, queue })
  expect(again?.id).toBe(known.id)
  const unheld = await store.run(unheldAttempts, { sessionId, ...masksOf([known]) })
  expect(unheld).toMatchObject([{ id: known.id, lease_id: again?.leaseId, attempt: 2 }])
})
