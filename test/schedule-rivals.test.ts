import { defineJob } from 'holdfast'
import { planStep } from '#holdfast/schedule/plan'
import { releaseDue, tickDue } from '#holdfast/schedule/tick'
import { dueSchedules, tickSchedules } from '#holdfast/schedule/tick.sql'
import { Ticker } from '#holdfast/schedule/ticker'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const report = defineJob('report', { run: () => 'done' })
const ticking = { missedAfterMs: 60_000, lagMs: 0 }

type Query = Fixtures['query']

/** Makes the next slot of schedules due, that many minutes ago. */
async function makeDue(query: Query, name = '%', minutes = 0): Promise<void> {
  await query(
    `update holdfast.schedule set next_at = moved.at, due_at = moved.at
    from (select date_trunc(case when $2 > 0 then 'minute' else 'milliseconds' end, clock_timestamp()) - $2 * interval '1 minute' as at) as moved
    where name like $1`,
    [name, minutes],
  )
}

async function end(query: Query, id: unknown): Promise<void> {
  await query('delete from holdfast.ready where job_id = $1', [id])
  await query(
    `insert into holdfast.outcome (job_id, finished_at, attempt, stage, failures, crashes, is_flawed, state, kind, tenant)
    select id, now(), 1, 0, 0, 0, false, 'succeeded', kind, tenant from holdfast.job where id = $1`,
    [id],
  )
}

const countJobs = async (query: Query) => (await query('select from holdfast.job')).length

test('a tick decides nothing if the last job is another one than its ticker saw', async ({ open, query, store }) => {
  const hf = await open({ jobs: [report] })
  await hf.schedules.set('buffered', { kind: report, every: '1m', overlap: 'buffer' })
  for (let slots = 0; slots < 2; slots++) {
    await makeDue(query)
    await tickDue(store, ticking)
  }
  await end(query, (await hf.schedules.get('buffered')).lastJob)
  await makeDue(query)
  const stale = (await store.run(dueSchedules, { lagMs: 0, limit: 10, only: null })).map((row) => planStep(row, 60_000))
  expect((await releaseDue(store)).ticked).toHaveLength(1)
  expect(await store.run(tickSchedules, { steps: stale })).toEqual([])
  expect((await tickDue(store, ticking)).ticked).toMatchObject([{ what: 'buffered' }])
})

test('slots that come due do not wait for thousands that were missed', async ({ open, query, store }) => {
  const hf = await open({ jobs: [report] })
  const timing = { kind: report, every: '1m', overlap: 'allow' } as const
  for (const name of ['behind', 'fresh']) await hf.schedules.set(name, { ...timing, missed: 'all' })
  await query(`
    insert into holdfast.schedule (tenant, name, kind, queue, crash_budget, kind_priority, input, every_ms, missed, missed_window_ms, missed_cap, overlap, next_at, due_at)
    select 'crowd', 'n' || number, kind, queue, crash_budget, kind_priority, input, every_ms, missed, missed_window_ms, missed_cap, overlap, next_at, due_at
    from holdfast.schedule cross join generate_series(1, 500) as number where name = 'behind'`)
  await makeDue(query, '%', 50)
  await makeDue(query, 'fresh')
  const ticked: string[] = []
  const ticker = new Ticker({
    store,
    missedAfterMs: 60_000,
    isLeader: () => true,
    cancel: async () => {},
    observer: { ticked: (round) => ticked.push(...round.ticked.map(({ name }) => name)), onError() {} },
  })
  await ticker.start()
  await until(() => ticked.includes('fresh') && ticked.includes('n500'), 'both are decided')
  await ticker.stop()
  expect(ticked.indexOf('fresh')).toBeLessThan(1_000)
})

test('an edit decides all slots that are due as they were set before', async ({ open, query }) => {
  const hf = await open({ jobs: [report] })
  await hf.schedules.set('edited', { kind: report, every: '1m', missed: 'all', overlap: 'allow' })
  await makeDue(query, 'edited', 5)
  await hf.schedules.set('edited', { kind: report, every: '1h', overlap: 'allow' })
  expect(await countJobs(query)).toBeGreaterThanOrEqual(6)
})

test('a schedule that is removed still cancels the jobs that it replaced, and is gone after that', async ({
  open,
  query,
  store,
}) => {
  const hf = await open({ jobs: [report] })
  await hf.schedules.set('replacing', { kind: report, every: '1m', overlap: 'cancel' })
  const replaced: unknown[] = []
  for (let slots = 0; slots < 3; slots++) {
    await makeDue(query)
    await tickDue(store, ticking)
    replaced.push((await hf.schedules.get('replacing')).lastJob)
  }
  const last = replaced.pop()
  await hf.schedules.remove('replacing')
  expect(await hf.schedules.list()).toEqual([])
  await hf.reap()
  for (const id of replaced)
    await until(async () => (await hf.get(id as string))?.state === 'cancelled', 'it is cancelled')
  expect(await hf.get(last as string)).toMatchObject({ state: 'queued' })
  await until(async () => (await query('select from holdfast.schedule')).length === 0, 'its row is gone')
})

test('replaced jobs that are locked hold up no others', async ({ open, query, pool, store }) => {
  const hf = await open({ jobs: [report] })
  for (const name of ['a', 'b']) await hf.schedules.set(name, { kind: report, every: '1m', overlap: 'cancel' })
  await makeDue(query)
  await tickDue(store, ticking)
  const [a, b] = [(await hf.schedules.get('a')).lastJob, (await hf.schedules.get('b')).lastJob]
  const free = await strangerHolds(pool, 'select from holdfast.ready where job_id = $1 for update', [a])
  await hf.reap()
  await makeDue(query, 'a')
  await until(async () => (await query(`select from holdfast.schedule where cancel_job_ids <> '{}'`)).length === 1)
  await makeDue(query, 'b')
  await until(async () => (await hf.get(b as string))?.state === 'cancelled', 'the other one is cancelled', 5_000)
  expect(await hf.get(a as string)).toMatchObject({ state: 'queued' })
  await free()
  await until(async () => (await hf.get(a as string))?.state === 'cancelled', 'the locked one is cancelled', 20_000)
})

test('a locked row of history puts off the slot of its own schedule only', async ({ open, query, pool, store }) => {
  const hf = await open({ jobs: [report] })
  for (const name of ['free', 'locked']) await hf.schedules.set(name, { kind: report, every: '1h' })
  await makeDue(query)
  await query(
    `insert into holdfast.schedule_slot (tenant, name, slot_at, what) select tenant, name, next_at, 'failed' from holdfast.schedule where name = 'locked'`,
  )
  const free = await strangerHolds(pool, 'select from holdfast.schedule_slot for update')
  const round = await tickDue(store, ticking)
  expect(round.ticked).toMatchObject([{ name: 'free', what: 'submitted' }])
  expect(await tickDue(store, ticking)).toMatchObject({ due: 0 })
  await free()
  await query(`update holdfast.schedule set due_at = now() where name = 'locked'`)
  expect((await tickDue(store, ticking)).ticked).toMatchObject([{ name: 'locked', what: 'submitted' }])
})

test('buffered slots that cannot be submitted hold up no slot that is due', async ({ open, query, store }) => {
  const hf = await open({ jobs: [report] })
  for (const name of ['odd', 'even']) await hf.schedules.set(name, { kind: report, every: '1m', overlap: 'buffer' })
  for (let slots = 0; slots < 2; slots++) {
    await makeDue(query)
    await tickDue(store, ticking)
  }
  for (const name of ['odd', 'even']) await end(query, (await hf.schedules.get(name)).lastJob)
  await query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not today'; end $$`,
  )
  await query(
    `create trigger refuse before insert on holdfast.job for each row when (new.tenant = 'odd') execute function refuse()`,
  )
  await query(`update holdfast.schedule set tenant = 'odd' where name = 'odd'`)
  const round = await releaseDue(store)
  expect(round.ticked).toMatchObject([{ name: 'even' }])
  expect(round.failed).toMatchObject([{ name: 'odd', problem: expect.stringContaining('not today') }])
  await query('drop trigger refuse on holdfast.job')
  expect((await releaseDue(store)).ticked).toMatchObject([{ name: 'odd' }])
})

test('a list of schedules leaves their inputs out, and a backfill starts in 1970 at the earliest', async ({ open }) => {
  const hf = await open({ jobs: [report] })
  await hf.schedules.set('yearly', {
    kind: report,
    input: { large: true } as never,
    cron: '@yearly',
    endsAt: new Date('2999-01-01'),
  })
  const [listed] = await hf.schedules.list()
  expect(listed).toMatchObject({ name: 'yearly' })
  expect(listed).not.toHaveProperty('input')
  expect(await hf.schedules.get('yearly')).toMatchObject({ input: { large: true } })
  const range = { from: new Date('0001-01-01'), to: new Date('1972-06-01') }
  expect(await hf.schedules.backfill('yearly', range)).toEqual({ submitted: 3, existing: 0 })
})

test('a backfill of more than one statement can store is refused, and changes nothing', async ({ open, query }) => {
  const hf = await open({ jobs: [report] })
  await hf.schedules.set('large', { kind: report, input: 'x'.repeat(100_000) as never, every: '1m' })
  const range = { from: new Date(Date.now() - 900 * 60_000), cap: 1_000 }
  await expect(hf.schedules.backfill('large', range)).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(hf.schedules.backfill('large', range)).rejects.toThrow('choose a shorter range')
  expect(await countJobs(query)).toBe(0)
})

test('a slot that waits for an earlier job goes before those that come due after it', async ({
  open,
  query,
  store,
}) => {
  const hf = await open({ jobs: [report] })
  await hf.schedules.set('buffered', { kind: report, every: '1m', overlap: 'buffer' })
  for (let slots = 0; slots < 2; slots++) {
    await makeDue(query)
    await tickDue(store, ticking)
  }
  const { lastJob: first, bufferedAt } = await hf.schedules.get('buffered')
  await end(query, first)
  await makeDue(query)
  expect(await tickDue(store, ticking)).toMatchObject({ ticked: [], failed: [], due: 1 })
  expect((await releaseDue(store)).ticked).toMatchObject([{ what: 'submitted' }])
  expect((await tickDue(store, ticking)).ticked).toMatchObject([{ what: 'buffered' }])
  const slots = await hf.schedules.history('buffered')
  expect(slots.find(({ slotAt }) => +slotAt === +(bufferedAt as Date))).toMatchObject({ what: 'submitted' })
  expect((await hf.schedules.get('buffered')).lastJob).not.toBe(first)
})
