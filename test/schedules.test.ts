import { defineJob, type Holdfast } from 'holdfast'
import { z } from 'zod'
import { planStep } from '#holdfast/schedule/plan'
import { releaseDue, tickDue } from '#holdfast/schedule/tick'
import { dueSchedules, tickSchedules } from '#holdfast/schedule/tick.sql'
import { test as base, expect, type Fixtures, until } from './fixtures.ts'

const report = defineJob('report', { input: z.object({ day: z.string() }), run: () => 'done' })
const input = { day: 'today' }
const minuteMs = 60_000

interface Scheduling {
  /** A connected Holdfast that knows the kind `report`, and does not tick. */
  hf: Holdfast
  /** Makes the next slot of a schedule due since that long, as if nothing had been running. */
  late: (name: string, ms: number) => Promise<Date>
  /** Ticks as a process does, until nothing is due. */
  tick: () => Promise<void>
  jobs: (kind?: string) => Promise<{ id: string; tenant: string; run_at: Date; queue: string; priority: number }[]>
}

const test = base.extend<Scheduling>({
  hf: async ({ open }, use) => use(await open({ jobs: [report] })),
  late: async ({ query }, use) =>
    use(async (name, ms) => {
      const [row] = await query<{ next_at: Date }>(
        `update holdfast.schedule set next_at = moved.at, due_at = moved.at
        from (select date_trunc('minute', now() - $2 * interval '1 ms') as at) as moved where name = $1 returning next_at`,
        [name, ms],
      )
      return row?.next_at as Date
    }),
  tick: async ({ store }, use) =>
    use(async () => {
      while ((await tickDue(store, { missedAfterMs: minuteMs, lagMs: 0 })).isFull);
    }),
  jobs: async ({ query }, use) =>
    use((kind = 'report') =>
      query(
        `select job.id, job.tenant, job.queue, job.priority, ready.run_at from holdfast.job left join holdfast.ready on ready.job_id = job.id where job.kind = $1 order by job.id`,
        [kind],
      ),
    ),
})

const what = async (hf: Holdfast, name: string) =>
  (await hf.schedules.history(name)).map((slot) => `${slot.what} ${slot.slots}`)

/** Ends the job of the last slot. */
async function end(query: Fixtures['query'], id: string): Promise<void> {
  await query('delete from holdfast.ready where job_id = $1', [id])
  await query(
    `insert into holdfast.outcome (job_id, finished_at, attempt, stage, failures, crashes, is_flawed, state, kind, tenant)
    select id, now(), 1, 0, 0, 0, false, 'succeeded', kind, tenant from holdfast.job where id = $1`,
    [id],
  )
}

test('a schedule submits one job per slot, under an id that follows from the slot', async ({
  hf,
  late,
  tick,
  jobs,
}) => {
  const set = await hf.schedules.set('hourly', { kind: report, input, cron: '0 * * * *' })
  expect(set).toMatchObject({ name: 'hourly', tenant: 'default', kind: 'report', state: 'active', overlap: 'skip' })
  expect(set.nextAt?.getTime()).toBeGreaterThan(Date.now())
  await tick()
  expect(await jobs()).toEqual([])
  const slot = await late('hourly', 1_000)
  await Promise.all([tick(), tick(), tick()])
  const [job, ...others] = await jobs()
  expect(others).toEqual([])
  expect(Number.parseInt(`${job?.id.slice(0, 8)}${job?.id.slice(9, 13)}`, 16)).toBe(slot.getTime())
  expect(await hf.schedules.history('hourly')).toMatchObject([{ slotAt: slot, what: 'submitted', job: job?.id }])
  expect(await hf.get(job?.id as string)).toMatchObject({ kind: 'report', input, state: 'queued' })
})

test('many tickers at the same slots submit each once', async ({ hf, query, tick, jobs }) => {
  await Promise.all(
    Array.from({ length: 40 }, (_, number) =>
      hf.schedules.set(`s${number}`, { kind: report, input, every: '10m', overlap: 'allow' }),
    ),
  )
  for (let round = 0; round < 5; round++) {
    await query(`update holdfast.schedule set due_at = now(), next_at = date_trunc('milliseconds', now())`)
    await Promise.all(Array.from({ length: 8 }, () => tick()))
  }
  expect(await jobs()).toHaveLength(200)
  const slots = await query(`select from holdfast.schedule_slot where what = 'submitted'`)
  expect(slots).toHaveLength(200)
})

test('a tick that comes after another tick, a pause or an edit of its schedule does nothing', async ({
  hf,
  late,
  store,
  jobs,
}) => {
  const stale = async () => {
    await late('raced', 1_000)
    const due = await store.run(dueSchedules, { lagMs: 0, limit: 10, only: null })
    return due.map((row) => planStep(row, minuteMs))
  }
  await hf.schedules.set('raced', { kind: report, input, every: '1h', overlap: 'allow' })
  const ticked = await stale()
  expect(await store.run(tickSchedules, { steps: ticked })).toHaveLength(1)
  expect(await store.run(tickSchedules, { steps: ticked })).toEqual([])
  const paused = await stale()
  await hf.schedules.pause('raced')
  expect(await store.run(tickSchedules, { steps: paused })).toEqual([])
  await hf.schedules.resume('raced')
  const edited = await stale()
  await hf.schedules.pause('raced')
  await hf.schedules.set('raced', { kind: report, input, every: '2h', overlap: 'allow' })
  await hf.schedules.resume('raced')
  const { nextAt } = await hf.schedules.get('raced')
  expect(await store.run(tickSchedules, { steps: edited })).toEqual([])
  expect(await hf.schedules.get('raced')).toMatchObject({ nextAt })
  expect(await jobs()).toHaveLength(1)
})

test('a slot whose job exists is never submitted again, not even by a schedule that was removed and set again', async ({
  hf,
  late,
  tick,
  jobs,
}) => {
  for (let times = 0; times < 2; times++) {
    await hf.schedules.set('again', { kind: report, input, every: '1h', overlap: 'allow' })
    await late('again', 1_000)
    await tick()
    await hf.schedules.remove('again')
  }
  expect(await jobs()).toHaveLength(1)
  expect(await hf.schedules.history('again')).toMatchObject([{ what: 'submitted', job: (await jobs())[0]?.id }])
})

test('of missed slots only the latest runs, and the others are one line of history', async ({
  hf,
  late,
  tick,
  jobs,
}) => {
  await hf.schedules.set('often', { kind: report, input, every: '1m' })
  await late('often', 30 * minuteMs)
  await tick()
  expect(await jobs()).toHaveLength(1)
  const [ran, skipped] = await hf.schedules.history('often')
  expect(ran).toMatchObject({ what: 'submitted' })
  expect(skipped).toMatchObject({ what: 'skipped', slots: 30, reason: expect.stringContaining('missed') })
  expect((ran?.slotAt.getTime() as number) - (skipped?.untilAt?.getTime() as number)).toBe(minuteMs)
})

test('missed slots can all be skipped, or all run within a window and a cap', async ({ hf, late, tick, jobs }) => {
  await hf.schedules.set('none', { kind: report, input, every: '10m', missed: 'skip' })
  await late('none', 65 * minuteMs)
  await tick()
  expect((await jobs()).length).toBeLessThanOrEqual(1)
  expect((await hf.schedules.history('none')).at(-1)).toMatchObject({ what: 'skipped' })
  await hf.schedules.remove('none')

  const before = (await jobs()).length
  await hf.schedules.set('all', { kind: report, input, every: '1m', missed: 'all', missedCap: 5, overlap: 'allow' })
  await late('all', 30 * minuteMs)
  await tick()
  expect((await jobs()).length - before).toBe(5)
  expect((await hf.schedules.history('all')).at(-1)).toMatchObject({ what: 'skipped', slots: 26 })

  await hf.schedules.set('window', {
    kind: report,
    input,
    every: '1m',
    missed: 'all',
    missedWindow: '10m',
    overlap: 'allow',
  })
  await late('window', 60 * minuteMs)
  await tick()
  expect((await what(hf, 'window')).filter((one) => one === 'submitted 1').length).toBeLessThanOrEqual(11)
})

test('a year of missed slots is decided at once', async ({ hf, late, tick, jobs }) => {
  await hf.schedules.set('busy', { kind: report, input, cron: '* * * * * *', tz: 'Europe/Berlin', missed: 'all' })
  await late('busy', 365 * 24 * 60 * minuteMs)
  // a busy machine takes longer, but does not compute more
  const before = process.cpuUsage()
  await tick()
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(5_000)
  expect((await jobs()).length).toBe(1)
  const all = await hf.schedules.history('busy', { limit: 1_000 })
  expect(all.at(-1)).toMatchObject({ what: 'skipped', slots: 1_000 })
})

test('while a job runs, the next slot is skipped, and history says which job it was', async ({
  hf,
  late,
  tick,
  jobs,
  query,
}) => {
  await hf.schedules.set('one', { kind: report, input, every: '1m' })
  await late('one', minuteMs / 2)
  await tick()
  const [first] = await jobs()
  await late('one', 0)
  await query(`update holdfast.schedule set next_at = now(), due_at = now()`)
  await tick()
  expect(await jobs()).toHaveLength(1)
  expect((await hf.schedules.history('one'))[0]).toMatchObject({
    what: 'skipped',
    reason: `job ${first?.id} has not ended`,
  })
  await end(query, first?.id as string)
  await query(`update holdfast.schedule set next_at = now(), due_at = now()`)
  await tick()
  expect(await jobs()).toHaveLength(2)
})

test('with buffer, one slot waits for the job of the one before', async ({ hf, tick, jobs, query, store }) => {
  await hf.schedules.set('buffered', { kind: report, input, every: '1m', overlap: 'buffer' })
  for (let slots = 0; slots < 3; slots++) {
    await query(`update holdfast.schedule set next_at = clock_timestamp(), due_at = now()`)
    await tick()
  }
  const [first] = await jobs()
  expect(await jobs()).toHaveLength(1)
  expect((await what(hf, 'buffered')).toSorted()).toEqual(['buffered 1', 'skipped 1', 'submitted 1'])
  expect(await releaseDue(store)).toMatchObject({ ticked: [], due: 0 })
  await end(query, first?.id as string)
  const released = await Promise.all([1, 2, 3].map(() => releaseDue(store)))
  expect(released.flatMap(({ ticked }) => ticked)).toMatchObject([{ what: 'submitted' }])
  expect(await jobs()).toHaveLength(2)
  expect(await hf.schedules.get('buffered')).toMatchObject({ bufferedAt: null })
})

test('with cancel, a slot replaces the job of the one before, even if the process that ticked died', async ({
  hf,
  open,
  tick,
  jobs,
  query,
}) => {
  await hf.schedules.set('replacing', { kind: report, input, every: '1m', overlap: 'cancel' })
  for (let slots = 0; slots < 2; slots++) {
    await query(`update holdfast.schedule set next_at = date_trunc('milliseconds', clock_timestamp()), due_at = now()`)
    await tick()
  }
  const [first, second] = await jobs()
  // the process that ticked is gone, and another one finishes it
  const other = await open()
  await other.reap()
  await until(async () => (await hf.get(first?.id as string))?.state === 'cancelled')
  expect(await hf.get(second?.id as string)).toMatchObject({ state: 'queued' })
  await until(async () => (await query(`select from holdfast.schedule where cancel_job_ids <> '{}'`)).length === 0)
})

test('jobs go where their kind is registered now, with their own priority, delayed by up to the jitter', async ({
  hf,
  open,
  late,
  tick,
  jobs,
}) => {
  await hf.schedules.set('moved', { kind: report, input, every: '1h', jitter: '10m', priority: 1 })
  const other = await open({
    jobs: [defineJob('report', { queue: 'reports', run: () => {} }), defineJob('x', { queue: 'y', run: () => {} })],
  })
  const working = await other.work({ queues: ['y'] })
  const slot = await late('moved', 0)
  await tick()
  const [job] = await jobs()
  expect(job).toMatchObject({ queue: 'reports', priority: 1 })
  const lateMs = (job?.run_at.getTime() as number) - slot.getTime()
  expect(lateMs).toBeLessThanOrEqual(10 * minuteMs + minuteMs)
  await working.stop()
})

test('a paused schedule submits nothing, and its slots are one line of history', async ({
  hf,
  late,
  tick,
  jobs,
  query,
}) => {
  await hf.schedules.set('rested', { kind: report, input, every: '1m' })
  await hf.schedules.pause('rested', { by: 'ann', reason: 'moving house' })
  await late('rested', 10 * minuteMs)
  await tick()
  expect(await jobs()).toEqual([])
  expect(await hf.schedules.get('rested')).toMatchObject({
    state: 'paused',
    pausedBy: 'ann',
    pauseReason: 'moving house',
  })
  const resumed = await hf.schedules.resume('rested', { by: 'bob' })
  expect(resumed).toMatchObject({ state: 'active', pausedAt: null })
  await tick()
  expect(await jobs()).toEqual([])
  expect(await hf.schedules.history('rested')).toMatchObject([
    { what: 'skipped', slots: 11, reason: 'the schedule was paused' },
  ])
  const types = await query<{ type: string }>(
    `select type from holdfast.event where type like 'schedule.%' order by seq`,
  )
  expect(types.map(({ type }) => type)).toEqual(['schedule.set', 'schedule.paused', 'schedule.resumed'])
})

test('an edit keeps the pause, the history and, if the timing is the same, the next slot', async ({
  hf,
  late,
  tick,
  jobs,
}) => {
  await hf.schedules.set('edited', { kind: report, input, every: '1h' })
  const slot = await late('edited', 1_000)
  // the slot is due and nobody has ticked yet
  await hf.schedules.set('edited', { kind: report, input: { day: 'tomorrow' }, every: '2h' })
  expect(await hf.schedules.history('edited')).toMatchObject([{ slotAt: slot, what: 'submitted' }])
  expect(await hf.get((await jobs())[0]?.id as string)).toMatchObject({ input })
  await hf.schedules.pause('edited')
  const before = await hf.schedules.get('edited')
  const after = await hf.schedules.set('edited', { kind: report, input, every: '2h', overlap: 'allow' })
  expect(after).toMatchObject({ state: 'paused', nextAt: before.nextAt, overlap: 'allow' })
  await tick()
})

test('a trigger submits a job at once, even while the schedule is paused', async ({ hf, jobs }) => {
  await hf.schedules.set('manual', { kind: report, input, every: '1d' })
  await hf.schedules.pause('manual')
  const { job } = await hf.schedules.trigger('manual', { by: 'ann' })
  expect((await jobs()).map(({ id }) => id)).toEqual([job])
  expect(await hf.schedules.history('manual')).toMatchObject([{ what: 'triggered', job, by: 'ann' }])
  expect(await hf.schedules.get('manual')).toMatchObject({ lastJob: job })
})

test('a backfill submits the slots of a range once, and refuses a range with too many', async ({ hf, jobs }) => {
  await hf.schedules.set('daily', { kind: report, input, cron: '0 3 * * *', tz: 'America/New_York' })
  const range = { from: new Date('2026-03-01T00:00Z'), to: new Date('2026-03-15T00:00Z') }
  expect(await hf.schedules.backfill('daily', range, { by: 'ann' })).toEqual({ submitted: 14, existing: 0 })
  expect(await hf.schedules.backfill('daily', { ...range, to: new Date('2026-03-16T00:00Z') })).toEqual({
    submitted: 1,
    existing: 14,
  })
  expect(await jobs()).toHaveLength(15)
  await expect(hf.schedules.backfill('daily', { ...range, cap: 5 })).rejects.toThrow('more than 5 slots')
  await expect(hf.schedules.backfill('daily', { from: new Date(Date.now() + 1e9) })).rejects.toThrow('in the past')
  expect(await jobs()).toHaveLength(15)
})

test('a preview shows the next slots of a schedule, or of a timing that is not stored', async ({ hf }) => {
  await hf.schedules.set('shown', { kind: report, input, every: '1h' })
  const slots = await hf.schedules.preview('shown', { count: 3 })
  expect(slots.map((slot) => slot.getTime() - (slots[0] as Date).getTime())).toEqual([0, 3_600_000, 7_200_000])
  expect(await hf.schedules.preview({ cron: '0 3 * * *', tz: 'Europe/Berlin' }, { count: 2 })).toHaveLength(2)
})

test('a schedule ends after its last slot', async ({ hf, query, tick, jobs }) => {
  const endsAt = new Date(Date.now() + 3_600_000)
  await hf.schedules.set('brief', {
    kind: report,
    input,
    every: '40m',
    startsAt: new Date(Date.now() + 60_000),
    endsAt,
  })
  for (let slots = 0; slots < 3; slots++) {
    await query(`update holdfast.schedule set due_at = now() - interval '1 s' where next_at is not null`)
    await tick()
  }
  expect((await hf.schedules.get('brief')).state).toMatch(/ended|active/)
  expect((await jobs()).length).toBeGreaterThan(0)
})

test('schedules of tenants are apart', async ({ hf, tick, late, jobs }) => {
  for (const tenant of ['acme', 'zeta']) await hf.schedules.set('same', { kind: report, input, every: '1h', tenant })
  await late('same', 1_000)
  await tick()
  expect((await jobs()).map(({ tenant }) => tenant).toSorted()).toEqual(['acme', 'zeta'])
  expect((await hf.schedules.list({ tenant: 'acme' })).map(({ tenant }) => tenant)).toEqual(['acme'])
  await expect(hf.schedules.get('same')).rejects.toMatchObject({ code: 'schedule_not_found' })
  await hf.schedules.remove('same', { tenant: 'acme' })
  expect(await hf.schedules.list()).toHaveLength(1)
})

test('bad schedules are refused with what to do, and change nothing', async ({ hf, open }) => {
  const refused: [object, string][] = [
    [{ cron: 'nightly' }, 'must have 5 fields'],
    [{ cron: '0 0 30 2 *' }, 'never fires'],
    [{ cron: '0 3 * * *', tz: 'Mars/Base' }, 'use an IANA name'],
    [{ cron: '0 3 * * *', every: '1h' }, 'not both'],
    [{}, 'needs either'],
    [{ every: '100ms' }, 'at least a second'],
    [{ every: -5 }, 'at least a second'],
    [{ every: '1h', overlap: 'queue' }, 'skip, buffer, allow or cancel'],
    [{ every: '1h', missed: 'some' }, 'skip, latest or all'],
    [{ every: '1h', missedCap: 0 }, 'whole number'],
    [{ every: '1h', jitter: 'long' }, 'jitter'],
    [{ every: '1h', priority: 9 }, 'priority'],
    [{ every: '1h', startsAt: 'soon' }, 'startsAt'],
    [{ every: '1h', endsAt: new Date(0) }, 'no slot after'],
    [{ every: '1h', tenant: 'no spaces' }, 'tenant'],
    [{ every: '1h', colour: 'red' }, 'colour'],
  ]
  for (const [timing, words] of refused)
    await expect(hf.schedules.set('bad', { kind: report, input, ...timing }), JSON.stringify(timing)).rejects.toThrow(
      words,
    )
  await expect(hf.schedules.set('no good', { kind: report, input, every: '1h' })).rejects.toThrow('cannot be named')
  await expect(hf.schedules.set('bad', { kind: report, input: {}, every: '1h' })).rejects.toMatchObject({
    code: 'input_invalid',
  })
  await expect(hf.schedules.set('bad', { kind: 'reprot', every: '1h' })).rejects.toMatchObject({ code: 'unknown_kind' })
  for (const act of ['get', 'remove', 'pause', 'resume', 'trigger', 'history', 'preview'] as const)
    await expect(hf.schedules[act]('nothing')).rejects.toMatchObject({ code: 'schedule_not_found' })
  expect(await hf.schedules.list()).toEqual([])
  const strict = await open({ jobs: [report], schedulesPerTenant: 1 })
  await strict.schedules.set('first', { kind: report, input, every: '1h' })
  await expect(strict.schedules.set('second', { kind: report, input, every: '1h' })).rejects.toMatchObject({
    code: 'too_many_schedules',
  })
})

test('a schedule that cannot be decided is noted in its history, tried again, and holds up no other', async ({
  hf,
  query,
  store,
  jobs,
}) => {
  for (const name of ['a', 'b', 'c', 'd']) await hf.schedules.set(name, { kind: report, input, every: '1h' })
  await query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not today'; end $$`,
  )
  await query(
    `create trigger refuse before insert on holdfast.job for each row when (new.tenant = 'odd') execute function refuse()`,
  )
  await query(`update holdfast.schedule set tenant = 'odd' where name = 'a'`)
  await query(`update holdfast.schedule set cron = 'nonsense', every_ms = null where name = 'b'`)
  await query(`update holdfast.schedule set next_at = date_trunc('second', now()), due_at = now()`)
  const round = await tickDue(store, { missedAfterMs: minuteMs, lagMs: 0 })
  expect(round.ticked.map(({ name }) => name).toSorted()).toEqual(['c', 'd'])
  expect(round.failed.map(({ name }) => name).toSorted()).toEqual(['a', 'b'])
  expect(await jobs()).toHaveLength(2)
  expect(await hf.schedules.get('a', { tenant: 'odd' })).toMatchObject({
    state: 'failing',
    problem: expect.stringContaining('not today'),
  })
  expect(await hf.schedules.history('b')).toMatchObject([{ what: 'failed' }])
  await query('drop trigger refuse on holdfast.job')
  await query(`update holdfast.schedule set due_at = now() where name = 'a'`)
  await tickDue(store, { missedAfterMs: minuteMs, lagMs: 0 })
  expect(await hf.schedules.history('a', { tenant: 'odd' })).toMatchObject([{ what: 'submitted' }])
})

test('a schedule whose row another transaction has locked holds up no other', async ({
  hf,
  query,
  pool,
  tick,
  jobs,
}) => {
  for (const name of ['locked', 'free']) await hf.schedules.set(name, { kind: report, input, every: '1h' })
  await query(`update holdfast.schedule set next_at = date_trunc('second', now()), due_at = now()`)
  const stranger = await pool.connect()
  await stranger.query('begin')
  await stranger.query(`select from holdfast.schedule where name = 'locked' for update`)
  await tick()
  expect(await jobs()).toHaveLength(1)
  await stranger.query('rollback')
  stranger.release()
  await tick()
  expect(await jobs()).toHaveLength(2)
})

test('the history of a schedule keeps its latest 1,000 slots', async ({ hf, query, tick }) => {
  await hf.schedules.set('long', { kind: report, input, every: '1h' })
  await query(`
    insert into holdfast.schedule_slot (tenant, name, slot_at, what)
    select 'default', 'long', now() - number * interval '1 h', 'skipped' from generate_series(1, 1500) as number`)
  await query(`update holdfast.schedule set decided = 99, next_at = date_trunc('second', now()), due_at = now()`)
  await tick()
  expect((await query('select from holdfast.schedule_slot')).length).toBeLessThanOrEqual(1_001)
  expect((await hf.schedules.history('long'))[0]).toMatchObject({ what: 'submitted' })
})
