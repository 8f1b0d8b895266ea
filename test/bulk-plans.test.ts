import { connect, type Holdfast } from 'holdfast'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keptJobs, leftJobs, lockEnded, lockLive, reprioritize, reschedule } from '#holdfast/bulk/act.sql'
import { groupFailures, groupFailuresOfTenant } from '#holdfast/bulk/failures.sql'
import { narrowJobs } from '#holdfast/bulk/find.sql'
import { highestId, lowestId } from '#holdfast/job/id'
import type { Sql } from '#holdfast/postgres/sql'
import { newDatabase, quick } from './fixtures.ts'
import { costOf } from './plan-cost.ts'

// One database for the file: half a million queued and half a million finished jobs, every hundredth of them failed. Statistics come from the
// time when all of it was empty, until a test gathers them.

let url: string
let drop: () => Promise<void>
let client: pg.Client
let hf: Holdfast

const load = [
  ...['job', 'ready', 'outcome'].map((table) => `alter table holdfast.${table} set (autovacuum_enabled = false)`),
  `analyze`,
  `create function uuid_at(n int) returns uuid language sql immutable as $$
    select (lpad(to_hex(1700000000000 + n), 12, '0') || '7' || substr(md5(n::text), 14))::uuid $$`,
  `insert into holdfast.job (id, kind, queue, tenant, priority, crash_budget, submitted_at, input)
  select uuid_at(n), 'kind-' || n % 10, 'default', case when n % 100000 = 0 then 'rare' else 'default' end, 2, 3, now(), json_build_object('n', n)
  from generate_series(1, 1000000) as n`,
  `insert into holdfast.ready (job_id, kind, queue, tenant, priority, crash_budget, run_at)
  select id, kind, queue, tenant, 2, 3, now() + interval '1 h' from holdfast.job where id <= uuid_at(500000)`,
  `insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state, error)
  select id, kind, tenant, now(), 1, 0, 0, 0, false, case when failed then 'failed' else 'succeeded' end,
    case when failed then json_build_object('code', 'timeout', 'message', 'page ' || id || ' took too long') end
  from (select *, (input ->> 'n')::int % 100 = 7 as failed from holdfast.job where id > uuid_at(500000)) as job`,
]

beforeAll(async () => {
  const database = await newDatabase()
  url = database.url
  drop = database.drop
  client = new pg.Client(url)
  await client.connect()
  for (const text of load) await client.query(text)
  hf = await connect({ url, ...quick })
}, 300_000)

afterAll(async () => {
  await hf?.close()
  await client?.end()
  await drop?.()
}, 60_000)

/** How long a call takes. */
async function timed<T>(call: () => Promise<T>): Promise<{ answer: T; ms: number }> {
  const startedMs = performance.now()
  const answer = await call()
  return { answer, ms: performance.now() - startedMs }
}

/** Two seconds, and one look that may have begun right before. On a busy machine a look takes longer. */
const boundMs = 4_000

for (const statistics of ['stale', 'fresh'] as const) {
  if (statistics === 'fresh') test('statistics are gathered', () => client.query('analyze').then(() => {}), 120_000)

  test(`with ${statistics} statistics a preview beside a million jobs stays within its bound, and says how far it came`, async () => {
    const preview = (operation: 'cancel' | 'redo' | 'delete', filter: object) =>
      timed(() => hf.bulk.preview({ operation, filter }))
    const some = await preview('cancel', { kind: 'kind-1' })
    expect(some.ms).toBeLessThan(boundMs)
    expect(some.answer.count).toBeGreaterThan(5_000)
    if (!some.answer.isAtLeast) expect(some.answer.count).toBe(50_000)
    const most = await preview('cancel', { all: true })
    expect(most.ms).toBeLessThan(boundMs)
    expect(most.answer.isAtLeast).toBe(true)
    expect(most.answer.count).toBeLessThanOrEqual(100_000)
    const failed = await preview('redo', { error: 'timeout' })
    expect(failed.ms).toBeLessThan(boundMs)
    expect(failed.answer).toMatchObject({ count: 5_000, isAtLeast: false, next: null })
    const rare = await preview('delete', { kind: 'kind-0', tenant: 'rare' })
    expect(rare.ms).toBeLessThan(boundMs)
    expect(rare.answer).toMatchObject({ count: 5, isAtLeast: false })
    const none = await preview('cancel', { text: 'not in any input' })
    expect(none.ms).toBeLessThan(boundMs)
    expect(none.answer).toMatchObject({ count: 0, sample: [] })
    // what was not looked at is said, and can be looked at
    expect(none.answer.isAtLeast).toBe(none.answer.next !== null)
  }, 60_000)

  test(`with ${statistics} statistics failures beside a million jobs are grouped within the bound`, async () => {
    const { answer, ms } = await timed(() => hf.failures())
    expect(ms).toBeLessThan(boundMs)
    expect(answer).toMatchObject({ count: 5_000, isAtLeast: false })
    expect(answer.groups).toMatchObject([
      { kind: 'kind-7', code: 'timeout', message: 'page # took too long', count: 5_000 },
    ])
    const rare = await timed(() => hf.failures({ tenant: 'rare' }))
    expect(rare.ms).toBeLessThan(boundMs)
    expect(rare.answer).toMatchObject({ count: 0, isAtLeast: false })
  }, 60_000)

  test(`with ${statistics} statistics no statement of a bulk operation walks a big table`, async () => {
    for (const [name, build] of Object.entries(samples))
      for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
        const { blocks, walked } = await costOf(client, await build(), { mode, tables: ['job', 'ready', 'outcome'] })
        expect.soft(walked, `${name} (${mode})`).toEqual([])
        expect.soft(blocks, `${name} (${mode})`).toBeLessThan(20_000)
      }
  }, 60_000)
}

const act = { bulk: lowestId, by: null, reason: null }
const seq = '9223372036854775807'
const queued = () => some('select job_id as id from holdfast.ready order by job_id limit 250')
const failed = () => some(`select job_id as id from holdfast.outcome where state = 'failed' order by job_id limit 250`)
const scan = { tenant: null, kind: null, endedSince: null, hasItems: false, below: highestId, most: 10_000 }

/** One call of each statement that has to find jobs among a million others. */
const samples: Record<string, () => Promise<Sql>> = {
  narrow: async () =>
    narrowJobs.build({
      ids: await failed(),
      seq,
      error: 'timeout',
      errorText: 'page',
      text: '1',
      jsonText: '1',
      endedSince: null,
      endedUntil: null,
    }),
  lockLive: async () => lockLive.build({ ids: await queued(), states: ['queued', 'running'], seq }),
  lockEnded: async () => lockEnded.build({ ids: await failed(), states: ['failed'], seq }),
  left: async () => leftJobs.build({ ids: await queued(), states: ['queued'], seq, isMove: true }),
  kept: async () => keptJobs.build({ ids: await failed() }),
  reprioritize: async () => reprioritize.build({ ...act, ids: await queued(), priority: 1 }),
  reschedule: async () => reschedule.build({ ...act, ids: await queued(), runAt: new Date() }),
  failures: async () => groupFailures.build(scan),
  failuresOfTenant: async () => groupFailuresOfTenant.build({ ...scan, tenant: 'rare' }),
}

async function some(text: string): Promise<string[]> {
  return (await client.query(text)).rows.map(({ id }) => id)
}
