import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Sql, textOf } from '#holdfast/postgres/sql'
import { planStep } from '#holdfast/schedule/plan'
import { releasableSchedules, releaseBuffered } from '#holdfast/schedule/release.sql'
import { listSlots } from '#holdfast/schedule/runs.sql'
import { listSchedules, listSchedulesOfTenant, overdueSchedules } from '#holdfast/schedule/schedule.sql'
import { type DueRow, dueSchedules, lookAtSchedules, tickSchedules } from '#holdfast/schedule/tick.sql'
import { failSchedules, forgetSlots, replacedJobs } from '#holdfast/schedule/unfinished.sql'
import { newDatabase } from './fixtures.ts'
import { costOf } from './plan-cost.ts'

// One database for the file: 50,000 schedules, 500 of which are due and 20 of which have a slot that waits, half a million slots in their
// histories, and 200,000 jobs. Statistics come from the time when all of it was empty, until a test gathers them.

let drop: () => Promise<void>
let client: pg.Client

const tables = ['schedule', 'schedule_slot', 'job', 'outcome']
const load = [
  ...tables.map((table) => `alter table holdfast.${table} set (autovacuum_enabled = false)`),
  `analyze`,
  `insert into holdfast.schedule (tenant, name, kind, queue, crash_budget, kind_priority, input, cron, missed, missed_window_ms, missed_cap, overlap, next_at, due_at)
  select 't' || n % 100, 's' || n, 'report', 'default', 3, 2, '{}', '0 * * * *', 'latest', 86400000, 100, 'buffer', at, at
  from generate_series(1, 50000) as n
  cross join lateral (select date_trunc('hour', now()) + case when n % 100 = 0 then interval '0' else interval '1 h' end as at) as slot`,
  `insert into holdfast.schedule_slot (tenant, name, slot_at, what)
  select tenant, name, now() - back * interval '1 h', 'skipped' from holdfast.schedule cross join generate_series(1, 10) as back`,
  `insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, input)
  select gen_random_uuid(), 'report', 'default', 'default', 2, 3, now(), '{}' from generate_series(1, 200000)`,
  `insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state)
  select id, kind, tenant, now(), 1, 0, 0, 0, false, 'succeeded' from holdfast.job`,
  `update holdfast.schedule set last_job_id = last.id
  from (select id, row_number() over (order by id) as n from holdfast.job limit 50000) as last where name = 's' || last.n`,
  `update holdfast.schedule set buffered_at = now(), cancel_job_ids = array[last_job_id] where name = any(array(select 's' || n * 2500 + 1 from generate_series(0, 19) as n))`,
  `update holdfast.schedule_slot set decided_at = now() - interval '1 year' where name = 's7'`,
]

beforeAll(async () => {
  const database = await newDatabase()
  drop = database.drop
  client = new pg.Client(database.url)
  await client.connect()
  for (const text of load) await client.query(text)
}, 300_000)

afterAll(async () => {
  await client?.end()
  await drop?.()
}, 60_000)

async function rowsOf<Row>(piece: Sql): Promise<Row[]> {
  return (await client.query(textOf(piece), piece.values as unknown[])).rows
}

const batch = { lagMs: 0, limit: 200, only: null }

/** One call of each statement that has to find schedules among many others. */
const samples: Record<string, () => Promise<Sql>> = {
  look: async () => lookAtSchedules.build({ withinMs: 7_200_000 }),
  due: async () => dueSchedules.build(batch),
  dueWithin: async () => dueSchedules.build({ ...batch, withinMs: 7_200_000 }),
  tick: async () => tickSchedules.build({ steps: await steps() }),
  fail: async () =>
    failSchedules.build({
      steps: (await steps()).map(({ expectedAt, ...step }) => ({
        ...step,
        slotAt: expectedAt,
        problem: 'x',
        isHeld: false,
      })),
    }),
  releasable: async () => releasableSchedules.build({ limit: 200 }),
  release: async () => releaseBuffered.build({ of: await rowsOf(releasableSchedules.build({ limit: 200 })) }),
  replaced: async () => replacedJobs.build({ limit: 200 }),
  forget: async () => forgetSlots.build({ olderThanMs: 86_400_000, limit: 500 }),
  list: async () => listSchedules.build({ kind: null, after: { tenant: 't7', name: 's7' }, limit: 100 }),
  listOfTenant: async () =>
    listSchedulesOfTenant.build({ tenant: 't99', kind: null, after: { tenant: 't99', name: '' }, limit: 100 }),
  history: async () => listSlots.build({ tenant: 't7', name: 's7', before: null, limit: 100 }),
  overdue: async () => overdueSchedules.build({}),
}

async function steps() {
  const due = await rowsOf<DueRow>(dueSchedules.build(batch))
  expect(due).toHaveLength(200)
  return due.map((row) => planStep({ ...row, revision: Number(row.revision) }, 60_000))
}

for (const statistics of ['stale', 'fresh'] as const) {
  if (statistics === 'fresh') test('statistics are gathered', () => client.query('analyze').then(() => {}), 120_000)

  test(`with ${statistics} statistics no statement of schedules walks a big table`, async () => {
    for (const [name, build] of Object.entries(samples))
      for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
        const { blocks, walked } = await costOf(client, await build(), { mode, tables })
        expect.soft(walked, `${name} (${mode})`).toEqual([])
        expect.soft(blocks, `${name} (${mode})`).toBeLessThan(20_000)
      }
  }, 120_000)
}
