import pg from 'pg'
import { suspectCrashes } from '#holdfast/job/define'
import { textOf } from '#holdfast/postgres/sql'
import { claimForRemote, claimSuspectForRemote } from '#holdfast/remote/remote.sql'
import { claimJobs, claimSuspects, nextDue } from '#holdfast/worker/claim.sql'
import { freeSuspect, waitingSuspect } from '#holdfast/worker/suspect.sql'
import { expect, test } from './fixtures.ts'
import { finishedCrowd, queuedCrowd } from './places.ts'

/** A node of a plan, as EXPLAIN tells it. */
interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  'Actual Rows': number
  Plans?: Plan[]
}

type Query = (text: string, values?: unknown[]) => Promise<unknown[]>

/** Most pages that a claim of ten jobs may touch; walking any of the crowds below would take thousands. */
const fewPages = 400
const lanes = [1, 2, 3, 4].map((priority) => ({ queue: 'mine', kind: 'sample', priority, stageCount: 2 }))
const statements = {
  'a claim': claimJobs.build({
    sessionId: 1,
    lanes,
    most: 10,
    mostBytes: 1e6,
    deadlinesMs: '{"sample":[60000,60000]}',
  }),
  'a claim of suspects': claimSuspects.build({
    sessionId: 1,
    lanes,
    most: 1,
    mostBytes: 1e6,
    deadlinesMs: '{"sample":[60000,60000]}',
  }),
  'a claim for a remote worker': claimForRemote.build({
    sessionId: 1,
    lanes,
    most: 10,
    mostBytes: 1e6,
    tenant: null,
    deadlinesMs: '{"sample":[60000,60000]}',
  }),
  'a claim of a suspect for a remote worker': claimSuspectForRemote.build({
    sessionId: 1,
    lanes,
    most: 1,
    mostBytes: 1e6,
    tenant: null,
    deadlinesMs: '{"sample":[60000,60000]}',
  }),
  'a look for suspects that wait': waitingSuspect.build({ lanes }),
  'a look for suspects that can be claimed': freeSuspect.build({ lanes }),
  'a look for the next due job': nextDue.build({ lanes }),
}

/** Jobs by the crowd: what a claim must never walk through. */
const crowds = {
  'of other queues': { count: 300_000, queue: `'other'`, runAt: `now() - interval '1 h'` },
  'of other kinds': { count: 100_000, queue: `'mine'`, kind: `'other'`, runAt: `now() - interval '1 h'` },
  'scheduled for later': { count: 200_000, queue: `'mine'`, runAt: `now() + interval '1 day'` },
  'due in its own lane': { count: 100_000, queue: `'mine'`, runAt: `now() - n * interval '1 ms'` },
}

async function fill(query: Query): Promise<void> {
  await query(`
    insert into holdfast.session (lease_until, lost_after, pid, host, version, kinds, queues, concurrency)
    values (now() + interval '1 day', '1 h', 1, 'test', '0', '{}', '{}', 1)`)
  for (const { count, queue, runAt, ...crowd } of Object.values(crowds) as {
    count: number
    queue: string
    runAt: string
    kind?: string
  }[])
    await query(
      queuedCrowd({
        count,
        runAt,
        queue,
        kind: crowd.kind ?? `'sample'`,
        input: `case when n % 2 = 0 then '{"page": 1}'::json end`,
      }),
    )
  // every other job has its input in a row of its own
  await query(
    `insert into holdfast.job_payload (job_id, input) select id, '{"page": 1}' from holdfast.job where input is null`,
  )
  await query(finishedCrowd({ count: 300_000, queue: `'mine'` }))
}

const withoutAutovacuum = ['job', 'ready', 'outcome', 'job_payload']
  .map((table) => `alter table holdfast.${table} set (autovacuum_enabled = off)`)
  .join('; ')

/** Runs each statement under both sorts of plan, undoes it, and checks what it touched. */
async function expectGoodPlans(url: string, rows: number): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    for (const mode of ['force_generic_plan', 'force_custom_plan']) {
      for (const [what, piece] of Object.entries(statements)) {
        await client.query(`set plan_cache_mode = ${mode}; deallocate all`)
        await client.query(`prepare probe as ${textOf(piece)}`)
        await client.query('begin')
        const values = piece.values.map(literal).join(', ')
        const { rows: told } = await client.query(`explain (analyze, buffers, format json) execute probe(${values})`)
        await client.query('rollback')
        const plan = told[0]['QUERY PLAN'][0].Plan as Plan
        const shown = `${what}, ${mode}: ${briefly(plan).join('\n')}`
        expect(scansOf(plan), shown).toEqual([])
        expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks'], shown).toBeLessThan(fewPages)
        if (what === 'a claim') expect(claimedBy(plan), shown).toBe(rows)
      }
    }
  } finally {
    await client.end()
  }
}

/** How many jobs a plan has claimed; what it answers are lots. */
function claimedBy(plan: Plan): number {
  const own = plan['Node Type'] === 'ModifyTable' && plan['Relation Name'] === 'ready' ? plan['Actual Rows'] : 0
  return own + (plan.Plans ?? []).reduce((sum, inner) => sum + claimedBy(inner), 0)
}

/** The jobs' tables that a plan reads from end to end. */
function scansOf(plan: Plan): string[] {
  const own =
    plan['Node Type'] === 'Seq Scan' && /^(job|ready|outcome|job_payload)$/.test(plan['Relation Name'] ?? '')
      ? [plan['Relation Name'] as string]
      : []
  return [...own, ...(plan.Plans ?? []).flatMap(scansOf)]
}

/** A plan in a line per node, for whoever reads why it is bad. */
function briefly(plan: Plan, depth = 0): string[] {
  const pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  const own = `${' '.repeat(depth)}${plan['Node Type']} ${plan['Index Name'] ?? plan['Relation Name'] ?? ''}: ${plan['Actual Rows']} rows, ${pages} pages`
  return [own, ...(plan.Plans ?? []).flatMap((inner) => briefly(inner, depth + 1))]
}

function literal(value: unknown): string {
  if (value === null) return 'null'
  if (!Array.isArray(value)) return pg.escapeLiteral(String(value))
  return pg.escapeLiteral(`{${value.map((one) => JSON.stringify(one)).join(',')}}`)
}

test('the index of suspects holds those whom the code suspects', async ({ query }) => {
  const [index] = await query(`select pg_get_indexdef('holdfast.ready_suspect'::regclass) as text`)
  expect(index?.text).toContain(
    `(crashes >= ${suspectCrashes}) OR ((crashes = 1) AND (crash_budget <= ${suspectCrashes}))`,
  )
})

test('a claim among a million jobs touches a few pages, however old the statistics are', { timeout: 120_000 }, async ({
  url,
  query,
}) => {
  await query(withoutAutovacuum)
  // analyzed when empty, then filled
  await query('analyze holdfast.job; analyze holdfast.ready; analyze holdfast.outcome; analyze holdfast.job_payload')
  await fill(query)
  await expectGoodPlans(url, 10)

  // never analyzed: this is how the catalogue looks before the first time
  await query(
    `update pg_class set reltuples = -1, relpages = 0 where relname in ('job', 'ready', 'outcome', 'job_payload')`,
  )
  await expectGoodPlans(url, 10)

  // analyzed when full, then drained: dead rows go as they would with time, but the statistics stay
  await query('analyze holdfast.job; analyze holdfast.ready; analyze holdfast.outcome; analyze holdfast.job_payload')
  await expectGoodPlans(url, 10)
  const [full] = await query('select reltuples from pg_class where relname = $1', ['ready'])
  const due = `from holdfast.ready where queue = 'mine' and kind = 'sample' and run_at < now()`
  await query(`delete ${due} and ctid <> all(array(select ctid ${due} limit 3))`)
  await query('vacuum holdfast.ready')
  await query('update pg_class set reltuples = $1 where relname = $2', [full?.reltuples, 'ready'])
  await expectGoodPlans(url, 3)
})
