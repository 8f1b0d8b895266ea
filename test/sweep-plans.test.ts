import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { audit } from '#holdfast/audit/audit'
import {
  browseEvents,
  browseJobEvents,
  browseTenantEvents,
  placeBeforeEnd,
  placeBeforeEndOfJob,
} from '#holdfast/events/log.sql'
import { type Statement, textOf } from '#holdfast/postgres/sql'
import { openStore } from '#holdfast/postgres/store'
import { endedSessions, listQueues, listQueuesOfTenant, livingSessions } from '#holdfast/reads/overview.sql'
import { pages } from '#holdfast/reads/page.sql'
import { lastRefusals, lastRevivals } from '#holdfast/reads/recovery.sql'
import { endingsOf } from '#holdfast/reads/results.sql'
import { tallyEvents } from '#holdfast/reads/throughput.sql'
import { lookForDue, pruneBatch } from '#holdfast/reaper/prune.sql'
import { quarantineJobs } from '#holdfast/reaper/quarantine.sql'
import { findAbandoned, findHung, type OrphanRow, reviveJobs } from '#holdfast/reaper/revive.sql'
import {
  endChildSessions,
  endDeadSessions,
  forgetRefusals,
  forgetSessions,
  strandedKinds,
} from '#holdfast/reaper/session.sql'
import { countDeliveries, listDeliveriesOfTenant, replayDeliveries } from '#holdfast/webhooks/deliveries.sql'
import { factsAbout } from '#holdfast/why/facts.sql'
import { newDatabase } from './fixtures.ts'

// One database for the file: a million queued and a million finished jobs, a few hundred that run, and a few dozen orphans
// among them. Statistics come from the time when all of it was empty, until a test gathers them.

let url: string
let drop: () => Promise<void>
let client: pg.Client

const load = [
  ...['job', 'ready', 'lease', 'outcome'].map(
    (table) => `alter table holdfast.${table} set (autovacuum_enabled = false)`,
  ),
  `do $$ declare part text; begin
    for part in select name from holdfast.event_partition loop
      execute format('alter table holdfast.%I set (autovacuum_enabled = false)', part);
    end loop;
  end $$`,
  `analyze`,
  // 30 sessions live, 5 are dead to all appearances, 5 have ended and still hold jobs, 200 ended long ago
  `insert into holdfast.session (pid, host, version, kinds, queues, concurrency, started_at, heartbeat_at, lease_until, lost_after, ended_at, ended_by, supervisor)
  select n, 'test', '0', array['kind-1'], array['default'], 10, now() - interval '3 d',
    case when n <= 30 then now() else now() - interval '2 d' end,
    case when n <= 30 then now() + interval '1 d' else now() - interval '2 d' end, interval '3 s',
    case when n > 35 then now() - interval '2 d' end, case when n > 35 then 'lock gone' end, 'boss'
  from generate_series(1, 240) as n`,
  `insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, input)
  select uuid_at(n), 'kind-' || n % 10, 'default', 'default', 2, 3, now(), case when n % 2 = 0 then 'null'::json end
  from generate_series(1, 2000000) as n`,
  `insert into holdfast.ready (job_id, kind, queue, tenant, priority, crash_budget, run_at)
  select uuid_at(n), 'kind-' || n % 10, 'default', 'default', 2, 3, now() + (n % 2) * interval '1 h' - interval '1 min'
  from generate_series(1000001, 2000000) as n
  where n % 2500 <> 0`,
  `insert into holdfast.lease (session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, job_ids)
  select 1 + n / 2500 % 40, now() + (case when n % 20000 = 0 then -1 else 1 end) * interval '1 h', now(), uuid_at(n), uuid_at(n), 0, 2, 'kind-' || n % 10, 'default',
    'default', '0', array[uuid_at(n)]
  from generate_series(1002500, 2000000, 2500) as n`,
  `insert into holdfast.outcome (job_id, kind, tenant, state, stage, attempt, failures, crashes, is_flawed, finished_at)
  select uuid_at(n), 'sample', 'default', 'succeeded', 0, 1, 0, 0, false, now()
  from generate_series(1, 1000000) as n`,
  // the inputs of the latest jobs that have none in their row
  ...[1_000_000, 2_000_000].map(
    (last) =>
      `insert into holdfast.job_payload (job_id) select uuid_at(n) from generate_series(${last} - 99999, ${last}, 2) as n`,
  ),
  // what was sent, and among it a few that are to be sent or were given up
  `alter table holdfast.delivery set (autovacuum_enabled = false)`,
  `insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, ended_at)
  select n, 'x', 'job.failed', 'default', 'lane-' || n % 10, state, '', case when state <> 'pending' then now() end
  from (select n, case n % 1000 when 0 then 'pending' when 1 then 'dead' else 'delivered' end as state from generate_series(1, 100000) as n) as sent`,
  `insert into holdfast.refusal (job_id, attempt, session_id, write)
  select uuid_at(n), 1, 1, 'finish' from generate_series(1, 1000) as n`,
]

// ids that grow with time, as those of real jobs do
const uuidAt = `
  create function pg_temp.uuid_at(n bigint) returns uuid language sql immutable as $$
    select ('01890a5d-' || lpad(to_hex(n >> 16), 4, '0') || '-7' || lpad(to_hex((n >> 4) & 4095), 3, '0') || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid
  $$`

beforeAll(async () => {
  const database = await newDatabase()
  url = database.url
  drop = database.drop
  client = new pg.Client(url)
  await client.connect()
  const startedMs = performance.now()
  await client.query(uuidAt)
  await client.query(`set synchronous_commit = off`)
  for (const text of load) await client.query(text.replaceAll('uuid_at(', 'pg_temp.uuid_at('))
  console.log(`two million jobs: loaded in ${Math.round(performance.now() - startedMs)} ms`)
}, 180_000)

afterAll(async () => {
  await client?.end()
  await drop?.()
})

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Plan[]
}

/** Runs a statement under EXPLAIN, as a server does that plans it anew or that keeps one plan for all values, and undoes it. */
async function planOf<P>(
  { build }: Statement<P, unknown>,
  params: P,
  mode: 'force_custom_plan' | 'force_generic_plan',
): Promise<Plan> {
  const piece = build(params)
  await client.query('begin')
  try {
    await client.query(`set local plan_cache_mode = ${mode}`)
    await client.query(`prepare sampled as ${textOf(piece)}`)
    const values = piece.values.length > 0 ? `(${piece.values.map(literal).join(', ')})` : ''
    const { rows } = await client.query(`explain (analyze, buffers, format json) execute sampled${values}`)
    await client.query('deallocate sampled')
    return rows[0]['QUERY PLAN'][0].Plan
  } finally {
    await client.query('rollback')
    await client.query('deallocate all')
  }
}

function literal(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `'{${value.map((one) => JSON.stringify(one)).join(',')}}'`
  return typeof value === 'number' ? String(value) : `'${value}'`
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

const orphansOf = async (where: string): Promise<OrphanRow[]> => {
  const { rows } = await client.query(
    `select job_id as id, attempt, session_id, lease_id, slot, size from holdfast.running where ${where} limit 20`,
  )
  return rows.map((row) => ({ ...row, rung: 'lock gone', lost_ms: 1000 }))
}

const day = 86_400_000
/** How long what has ended is kept; all that has ended is younger. */
const kept = { succeededMs: 30 * day, othersMs: 90 * day, keysMs: 7 * day, capMs: 90 * day }
const samples: [
  name: string,
  plan: (mode: 'force_custom_plan' | 'force_generic_plan') => Promise<Plan>,
  least: number,
][] = [
  ['orphan.abandoned', (mode) => planOf(findAbandoned, { limit: 500 }, mode), 1],
  ['orphan.hung', (mode) => planOf(findHung, { limit: 500 }, mode), 1],
  ['session.end_dead', (mode) => planOf(endDeadSessions, { limit: 500, steadyMs: 60_000, watchedMs: 60_000 }, mode), 1],
  ['session.end_child', (mode) => planOf(endChildSessions, { supervisor: 'boss', pid: 3, exit: null }, mode), 1],
  ['orphan.stranded', (mode) => planOf(strandedKinds, {}, mode), 1],
  ['session.forget', (mode) => planOf(forgetSessions, { olderThanMs: day, limit: 500 }, mode), 1],
  ['refusal.forget', (mode) => planOf(forgetRefusals, { olderThanMs: 7 * day, limit: 500 }, mode), 0],
  ['prune.look', (mode) => planOf(lookForDue, kept, mode), 0],
  ['prune.batch', (mode) => planOf(pruneBatch, { ...kept, safe: 1e12, most: 500 }, mode), 0],
  ['session.living', (mode) => planOf(livingSessions, { before: 1_000, limit: 100 }, mode), 1],
  ['session.ended', (mode) => planOf(endedSessions, { before: 1_000, limit: 100 }, mode), 1],
  ['event.revivals', (mode) => planOf(lastRevivals, { limit: 20 }, mode), 0],
  ['refusal.last', (mode) => planOf(lastRefusals, { limit: 20 }, mode), 0],
  // looks at no more than so many jobs of each queue and state, and at few blocks beside them
  ['queue.list', (mode) => planOf(listQueues, { tenant: 'default', most: 100 }, mode), 0],
  ['queue.list_tenant', (mode) => planOf(listQueuesOfTenant, { tenant: 'nobody', most: 100_000 }, mode), 0],
  ['event.tally', (mode) => planOf(tallyEvents, { after: 1_000, most: 100 }, mode), 0],
  ['delivery.count', (mode) => planOf(countDeliveries, { tenant: 'default', most: 100 }, mode), 0],
  ['job.revive', async (mode) => planOf(reviveJobs, { orphans: await orphansOf('session_id > 35') }, mode), 1],
  ['job.quarantine', async (mode) => planOf(quarantineJobs, { orphans: await orphansOf('session_id > 35') }, mode), 0],
]

/** What somebody looks for that hardly a row fits. */
const rare = {
  kind: 'nobody-has-this',
  queue: null,
  tenant: null,
  states: ['running', 'failed'],
  hasItems: true,
  below: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  from: '00000000-0000-0000-0000-000000000000',
  limit: 50,
  most: 3_000,
}
const ids = async (count: number) =>
  (await client.query(`select pg_temp.uuid_at(1000000 - n) as id from generate_series(1, ${count}) as n`)).rows.map(
    ({ id }) => id as string,
  )
const job = '01890a5d-000f-7424-8000-0000000f4240'
const wanted = { types: null, items: false, tenant: 'nobody', jobId: null, upTo: 1_000_000, limit: 500 }

samples.push(
  ...Object.values(pages).map(
    (page) => [page.name, (mode) => planOf(page, { ...rare, tenant: 'nobody' }, mode), 0] as (typeof samples)[number],
  ),
  ['event.browse', (mode) => planOf(browseEvents, { ...wanted, after: 1_000, most: 10_000 }, mode), 0],
  ['event.browse_tenant', (mode) => planOf(browseTenantEvents, { ...wanted, after: 0, most: 10_000 }, mode), 0],
  [
    'delivery.list_tenant',
    (mode) =>
      planOf(
        listDeliveriesOfTenant,
        { tenant: 'nobody', endpoint: null, job: null, state: null, before: null, limit: 50 },
        mode,
      ),
    0,
  ],
  [
    'delivery.replay_all',
    (mode) =>
      planOf(
        replayDeliveries,
        {
          tenant: 'nobody',
          endpoint: null,
          since: null,
          states: ['delivered'],
          after: rare.from,
          limit: 500,
          by: null,
        },
        mode,
      ),
    0,
  ],
  ['event.browse_job', (mode) => planOf(browseJobEvents, { ...wanted, jobId: job, after: 0 }, mode), 0],
  ['event.place_before_end', (mode) => planOf(placeBeforeEnd, { ...wanted, back: 20, most: 10_000 }, mode), 0],
  ['event.place_before_end_job', (mode) => planOf(placeBeforeEndOfJob, { ...wanted, jobId: job, back: 20 }, mode), 0],
  [
    'job.endings',
    async (mode) => planOf(endingsOf, { ids: await ids(100), unseen: await ids(10), mostBytes: 1_000_000 }, mode),
    0,
  ],
)

/** One that has ended, one that is queued, and one that runs. */
const told = async () =>
  (await client.query('select pg_temp.uuid_at(n) as id from unnest(array[1000000, 1000001, 1002500]) as n')).rows.map(
    ({ id }) => id as string,
  )
samples.push(
  ...[0, 1, 2].map(
    (index) =>
      [
        'why.facts',
        async (mode) => planOf(factsAbout, { id: (await told())[index] as string, shown: 10 }, mode),
        1,
      ] as (typeof samples)[number],
  ),
)

const big = ['job', 'ready', 'outcome', 'event', 'job_payload', 'delivery']

async function costOf(
  name: string,
  explain: (typeof samples)[number][1],
  mode: 'force_custom_plan' | 'force_generic_plan',
) {
  const plan = await explain(mode)
  const blocks = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  const walked = nodesOf(plan)
    .filter((node) => node['Node Type'] === 'Seq Scan' && big.includes(node['Relation Name'] ?? ''))
    .map((node) => node['Relation Name'])
  console.log(`${name} (${mode}): ${blocks} blocks`)
  return { blocks, walked }
}

const statistics = ['stale', 'fresh'] as const
for (const state of statistics) {
  test(`with ${state} statistics no statement of the reaper, none of an overview, and no page of what is rare walks a big table`, {
    timeout: 60_000,
  }, async () => {
    if (state === 'fresh') await client.query('analyze')
    for (const [name, explain] of samples)
      for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
        const { blocks, walked } = await costOf(name, explain, mode)
        expect.soft(walked, `${name} (${mode})`).toEqual([])
        expect.soft(blocks, `${name} (${mode})`).toBeLessThan(2_000)
      }
  })
}

test('a batch of what is due is removed by indexes alone, beside two million jobs', async () => {
  await client.query('begin')
  const scans = `select relname from pg_stat_xact_user_tables
    where schemaname = 'holdfast' and seq_tup_read > 1000 order by relname`
  const before = (await client.query(scans)).rows
  const piece = pruneBatch.build({ ...kept, succeededMs: 0, safe: 1e12, most: 500 })
  await client.query(`update holdfast.outcome set finished_at = now() - interval '1 d' where seq <= (
    select seq from holdfast.outcome order by seq offset 2000 limit 1)`)
  await client.query(textOf(piece), [...piece.values])
  const startedMs = performance.now()
  const { rows } = await client.query(textOf(piece), [...piece.values])
  const tookMs = performance.now() - startedMs
  expect(rows).toMatchObject([{ removed: 500, forced: 0, is_full: true }])
  expect((await client.query(scans)).rows).toEqual(before)
  await client.query('rollback')
  console.log(`a batch of 500: ${tookMs.toFixed(1)} ms`)
  expect(tookMs).toBeLessThan(500)
})

test('an audit of two million jobs ends soon, and finds what is wrong', { timeout: 60_000 }, async () => {
  const store = openStore({ url, poolSize: 2, isPooled: false, statementTimeoutMs: 90_000 })
  const { violations, ms } = await audit(store, { boundMs: 20_000, latest: 100_000, budgetMs: 60_000 })
  await store.close()
  console.log(`audit of two million jobs: ${ms} ms`)
  expect(violations.map(({ invariant }) => invariant)).toEqual([
    'attempt-has-living-session',
    'attempt-within-deadline',
  ])
})

test('what every source says about a job is found by indexes, beside two million jobs', async () => {
  // on a connection of its own: what others have scanned is counted with the connection, not with the statement
  const asker = new pg.Client(url)
  await asker.connect()
  for (const id of await told()) {
    const { texts, values } = factsAbout.build({ id, shown: 10 })
    const ask = () => asker.query({ name: 'why.facts', text: textOf({ texts, values }), values: [...values] })
    expect((await ask()).rows).toMatchObject([{ facts: { job: { id } } }])
    // the fastest of a few: a machine that stands still for a moment is no plan that walks a table
    let tookMs = Number.POSITIVE_INFINITY
    for (let turn = 0; turn < 5; turn++) {
      const startedMs = performance.now()
      await ask()
      tookMs = Math.min(tookMs, performance.now() - startedMs)
    }
    console.log(`what every source says: ${tookMs.toFixed(1)} ms`)
    expect(tookMs).toBeLessThan(50)
  }
  // leases and sessions are few, and read from end to end
  const scanned = `select relname from pg_stat_xact_user_tables
    where schemaname = 'holdfast' and relname not in ('lease', 'session') and seq_tup_read > 0`
  expect((await asker.query(scanned)).rows).toEqual([])
  await asker.end()
})
