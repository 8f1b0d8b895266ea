import { defineJob } from 'holdfast'
import { readConfig } from '#holdfast/config/config'
import { textOf } from '#holdfast/postgres/sql'
import { type Store, tellingRunner } from '#holdfast/postgres/store'
import { makeDuties } from '#holdfast/reaper/duties'
import { ladder, laterOf } from '#holdfast/reaper/recovery-bound'
import { cancelJobs } from '#holdfast/submit/submit.sql'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'

type Query = (text: string, values?: unknown[]) => Promise<unknown[]>

/** Makes the database refuse to revive jobs of this kind; answers how to allow it again. */
async function refuseToRevive(query: Query, kind: string): Promise<() => Promise<unknown>> {
  await query(
    `create function refused() returns trigger language plpgsql as $$ begin raise exception 'planted'; end $$`,
  )
  await query(`create trigger refused before insert on holdfast.event_log for each row
    when (new.type = 'job.revived' and new.kind = '${kind}') execute function refused()`)
  return () => query('drop trigger refused on holdfast.event_log')
}

/** The same store, and how many statements it has run. */
function counted(store: Store): { store: Store; statements: () => number } {
  let told = 0
  const tell = () => {
    told += 1
  }
  // it is told before and after each
  return { store: tellingRunner(store, tell), statements: () => told / 2 }
}

/** How much longer a machine may take that does other things besides. What does not depend on it is counted in statements. */
const busy = 2

/** The printed bound for so many jobs whose worker was killed, at default settings. */
function boundFor(jobs: number): number {
  const lockGone = ladder(readConfig({}, {})).find(({ rung }) => rung === 'lock gone')
  return (lockGone?.boundMs as number) + laterOf(jobs)
}

test('the bound is for 1,000 jobs that are lost at once, and every further 1,000 take a second more', () => {
  expect([1, 1_000, 1_001, 1_250, 20_000].map(laterOf)).toEqual([0, 0, 1_000, 1_000, 19_000])
})

test('1,200 orphans that cannot be revived leave 50 others of a dead worker their bound', async ({
  given,
  open,
  query,
}) => {
  await refuseToRevive(query, 'bad')
  await given.crowdOfDeadSession('bad', 1_200)
  const { queue } = await given.crowdOfDeadSession('good', 50)
  const ran = new Set<string>()
  const good = defineJob('good', { queue, run: ({ job }) => void ran.add(job.id) })
  // nobody else sweeps: the bound starts with the worker
  const hf = await open({ jobs: [good] })
  const startedMs = performance.now()
  await hf.work()
  await until(() => ran.size === 50, 'all good ones have run again', busy * boundFor(1_250))
  console.log(`50 jobs behind 1,200 bad ones ran again after ${Math.round(performance.now() - startedMs)} ms`)
  expect((await hf.list({ kind: 'bad', state: 'running', limit: 1 })).length).toBe(1)
}, 30_000)

test('orphans that cannot be revived are tried in the first sweep after the others, and then cost the next ones next to nothing', async ({
  given,
  store,
  query,
}) => {
  await refuseToRevive(query, 'bad')
  await given.crowdOfDeadSession('bad', 1_200)
  await given.crowdOfDeadSession('good', 50)
  const duties = makeDuties()
  const { store: runner, statements } = counted(store)
  const first = await sweepOf(runner, duties)
  expect(first.revived).toHaveLength(50)
  expect(first.failed).toHaveLength(500)
  // a few for all of them, and then hardly more than one for each bad one
  expect(statements()).toBeLessThan(1_200)
  const rest = [await sweepOf(runner, duties), await sweepOf(runner, duties)]
  expect(rest.flatMap(({ failed }) => failed)).toHaveLength(700)
  const before = statements()
  await given.crowdOfDeadSession('good', 50)
  expect((await sweepOf(runner, duties)).revived).toHaveLength(50)
  expect(statements() - before).toBeLessThan(100)
}, 60_000)

test('a whole batch of orphans that cannot be revived does not hide the one behind it', async ({
  given,
  store,
  query,
  hf,
}) => {
  await refuseToRevive(query, 'bad')
  await given.crowdOfDeadSession('bad', 2_000)
  const behind = await given.attemptOfDeadSession()
  const duties = makeDuties()
  await until(async () => {
    await sweepOf(store, duties)
    return (await hf.get(behind.id))?.state === 'queued'
  }, 'the one behind is revived')
}, 60_000)

test('orphans that could not be revived are revived once the database lets them', async ({ given, store, query }) => {
  const allow = await refuseToRevive(query, 'bad')
  await given.crowdOfDeadSession('bad', 20)
  const duties = makeDuties()
  expect((await sweepOf(store, duties)).failed).toHaveLength(20)
  await allow()
  await until(async () => (await sweepOf(store, duties)).revived.length === 20, 'all are revived')
})

test('20,000 attempts of one dead worker are revived within the bound for so many', async ({ given, store }) => {
  await given.crowdOfDeadSession('good', 20_000)
  const { store: runner, statements } = counted(store)
  const { revived, sweep } = await sweepOf(runner, makeDuties())
  expect(new Set(revived.map(({ id }) => id)).size).toBe(20_000)
  console.log(`20,000 jobs revived in ${Math.round(sweep.sweepMs)} ms, by ${statements()} statements`)
  expect(statements()).toBeLessThan(100)
  expect(sweep.sweepMs).toBeLessThan(busy * boundFor(20_000))
}, 60_000)

test('beside 10,000 leases of one job each, one of their jobs is found by looking at a few, and 1,500 can be cancelled at once', async ({
  given,
  hf,
  query,
}) => {
  const sessionId = await given.session()
  await query(`with made as (
    insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input)
    select gen_random_uuid(), now(), 3, 2, 'sample', 'default', 'default', 'null'::json from generate_series(1, 10000) returning id
  )
  insert into holdfast.lease (session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, job_ids)
  select ${sessionId}, now() + interval '1 h', now(), id, id, 0, 2, 'sample', 'default', 'default', b'0', array[id] from made`)
  const ids = (await query<{ id: string }>('select id from holdfast.job order by id')).map(({ id }) => id)
  for (const state of ['stale', 'fresh']) {
    if (state === 'fresh') await query('analyze')
    for (const id of [ids[0], ids[5_000], ids[9_999]] as string[]) {
      const { values, ...piece } = cancelJobs.build({ ids: [id], tenant: null, reason: null })
      for (const [text, given] of [
        ['select * from holdfast.job_status where id = $1', [id]],
        [textOf({ values, ...piece }), values],
      ] as const)
        expect(await mostRows(query, text, given), `${text.slice(0, 30)}, ${state}`).toBeLessThan(10)
    }
  }
  expect(await hf.get(ids[5_000] as string)).toMatchObject({ state: 'running', sessionId, attempt: 1 })
  expect(await hf.list({ state: 'running', limit: 20 })).toMatchObject(
    ids
      .slice(-20)
      .reverse()
      .map((id) => ({ id })),
  )
  await Promise.all(ids.slice(0, 1_500).map((id) => hf.cancel(id)))
  expect(await hf.list({ state: 'cancelled', limit: 1_000 })).toHaveLength(1_000)
  expect(await query('select count(*)::int from holdfast.lease')).toEqual([{ count: 8_500 }])
}, 60_000)

interface Plan {
  'Actual Rows': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

/** The most rows that a part of a plan has read, without changing anything. */
async function mostRows(query: Query, text: string, values: readonly unknown[]): Promise<number> {
  const rowsOf = (plan: Plan): number[] => [
    plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0),
    ...(plan.Plans ?? []).flatMap(rowsOf),
  ]
  await query(`create or replace function explained(statement text) returns json language plpgsql as $$
    declare plan json; begin execute 'explain (analyze, format json) ' || statement into plan; raise exception using message = plan::text; end $$`)
  const told = text.replace(/\$(\d+)/g, (_, n) => literal(values[Number(n) - 1]))
  const plan = await query('select explained($1)', [told]).then(
    () => '',
    (error: Error) => error.message,
  )
  return Math.max(...rowsOf(JSON.parse(plan)[0].Plan))
}

function literal(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? `'{${value.join(',')}}'` : `'${value}'`
}
