import { once } from 'node:events'
import { defineJob, type Holdfast, type NewBulkOperation } from 'holdfast'
import { advanceJobs } from '#holdfast/settle/settle.sql'
import { heldFenceOf } from '#holdfast/worker/attempt'
import type { ClaimedRow } from '#holdfast/worker/claim-batch'
import { expect, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'
import { queuedCrowd } from './places.ts'

const noop = defineJob('noop', { run: () => {} })
const other = defineJob('other', { run: () => {} })
const oldId = '01890a5d-ac96-774b-bcce-b302099a8057'
const later = { delayMs: 3_600_000 }

/** Starts an operation and waits for its end. */
async function carriedOut(hf: Holdfast, operation: NewBulkOperation) {
  const { id } = await hf.bulk.start(operation)
  return ended(hf, id)
}

function ended(hf: Holdfast, id: string, withinMs?: number) {
  return until(
    async () => {
      const bulk = await hf.bulk.get(id)
      return bulk.state !== 'running' && bulk
    },
    'the bulk operation ends',
    withinMs,
  )
}

const eventsOf = async (hf: Holdfast, type: string) =>
  (await hf.events.page({ types: type })).events.map(({ data }) => data)

test('a bulk cancel cancels what matches and nothing else, and says who and why', async ({ open }) => {
  const hf = await open({ jobs: [noop, other] })
  await hf.reap()
  const mine = await hf.submitMany(
    noop,
    [1, 2, 3].map(() => ({ input: undefined as never, ...later })),
  )
  const others = await hf.submitMany(other, [{ input: undefined as never, ...later }])
  const filter = { kind: 'noop' }
  expect(await hf.bulk.preview({ operation: 'cancel', filter })).toMatchObject({
    count: 3,
    isAtLeast: false,
    next: null,
    sample: mine.map(({ id }) => ({ id, state: 'queued' })).reverse(),
  })
  const bulk = await carriedOut(hf, { operation: 'cancel', filter, by: 'ada', reason: 'wrong input' })
  expect(bulk).toMatchObject({
    state: 'finished',
    expected: 3,
    done: 3,
    skipped: 0,
    askedBy: 'ada',
    reason: 'wrong input',
    filter: { kind: 'noop', states: ['queued', 'running', 'waiting'], items: false },
  })
  for (const { id } of mine) {
    expect(await hf.state(id)).toBe('cancelled')
    const events = await hf.timeline(id)
    expect(events.at(-1)).toMatchObject({
      type: 'job.cancelled',
      data: { bulk: bulk.id, by: 'ada', reason: 'wrong input' },
    })
  }
  for (const { id } of others) expect(await hf.state(id)).toBe('queued')
  expect(await eventsOf(hf, 'bulk.started')).toEqual([
    { bulk: bulk.id, operation: 'cancel', expected: 3, by: 'ada', reason: 'wrong input' },
  ])
  expect(await eventsOf(hf, 'bulk.finished')).toEqual([
    { bulk: bulk.id, operation: 'cancel', done: 3, skipped: 0, by: 'ada', reason: 'wrong input' },
  ])
  expect(await hf.bulk.list()).toEqual([bulk])
})

test('a bulk redo runs failed jobs with one error code again, and never twice', async ({ open, given }) => {
  const hf = await open()
  await hf.reap()
  const failed = [await given.finished('failed'), await given.finished('failed')]
  const cancelled = await given.finished('cancelled')
  const bulk = await carriedOut(hf, { operation: 'redo', filter: { error: 'handler_failed' }, by: 'ada' })
  expect(bulk).toMatchObject({ state: 'finished', done: 2, skipped: 0 })
  for (const { id } of failed) expect(await hf.state(id)).toBe('queued')
  expect(await hf.state(cancelled.id)).toBe('cancelled')
  expect(await eventsOf(hf, 'job.redone')).toEqual(failed.map(() => ({ by: 'ada', bulk: bulk.id })))
})

test('a bulk delete removes finished jobs with everything, and keeps those whose events are unread', async ({
  open,
  given,
  query,
}) => {
  const hf = await open()
  await hf.reap()
  const [gone, live] = [await given.finished('failed', { kind: 'gone' }), await given.queued({ kind: 'gone' })]
  expect(await carriedOut(hf, { operation: 'delete', filter: { kind: 'gone' } })).toMatchObject({ done: 1, skipped: 0 })
  expect(await hf.get(gone.id)).toBeNull()
  expect(await hf.state(live.id)).toBe('queued')
  expect(await query('select from holdfast.event_log where job_id = $1', [gone.id])).toEqual([])

  const reading = await hf.events.subscribe('slow', { types: 'job.*', from: 'now' }, () => {})
  await reading.stop()
  const unread = await given.finished('failed', { kind: 'unread' })
  const kept = await carriedOut(hf, { operation: 'delete', filter: { kind: 'unread' } })
  expect(kept).toMatchObject({ done: 0, skipped: 1 })
  expect(await hf.bulk.skipped(kept.id)).toMatchObject([{ job: unread.id, reason: 'unread' }])
  expect(await hf.state(unread.id)).toBe('failed')
})

test('a bulk change of priority holds for the next stage as well, and is in the timeline', async ({
  open,
  given,
  query,
  store,
}) => {
  const hf = await open()
  await hf.reap()
  const { id, queue } = await given.queued({ kind: 'slow' })
  const bulk = await carriedOut(hf, {
    operation: 'priority',
    priority: 1,
    filter: { queue },
    reason: 'a customer waits',
  })
  expect(bulk).toMatchObject({ done: 1, change: { priority: 1 } })
  expect(await hf.get(id)).toMatchObject({ priority: 1 })
  const queued = () => query('select priority, stage from holdfast.ready where job_id = $1', [id])
  expect(await queued()).toEqual([{ priority: 1, stage: 0 }])
  expect((await hf.timeline(id)).at(-1)).toMatchObject({
    type: 'job.reprioritized',
    data: { priority: 1, bulk: bulk.id, reason: 'a customer waits' },
  })
  const [row] = await given.claim({ sessionId: await given.session(), queue, kind: 'slow' })
  const fences = [heldFenceOf(row as ClaimedRow)]
  await store.run(advanceJobs, { fences, outputs: ['"first"'], stageNames: ['one'] })
  expect(await queued()).toEqual([{ priority: 1, stage: 1 }])
})

test('a bulk reschedule moves queued jobs to a time, or by a delay from when it was asked for', async ({
  open,
  given,
}) => {
  const hf = await open()
  await hf.reap()
  const { id, queue } = await given.queued()
  const runAt = new Date(Date.now() + 7_200_000)
  expect(await carriedOut(hf, { operation: 'reschedule', runAt, filter: { queue } })).toMatchObject({ done: 1 })
  expect(await hf.get(id)).toMatchObject({ runAt })
  const now = await carriedOut(hf, { operation: 'reschedule', delayMs: 0, filter: { queue } })
  expect(await hf.get(id)).toMatchObject({ runAt: now.askedAt })
  expect((await hf.timeline(id)).at(-1)).toMatchObject({ type: 'job.rescheduled', data: { bulk: now.id } })
})

test('a bulk reschedule leaves a job alone that has run and whose outcome is parked', async ({
  open,
  given,
  query,
}) => {
  const hf = await open()
  const { id, queue } = await given.queued()
  await query(`update holdfast.ready set run_at = '9999-01-01 00:00:00+00', attempt = 1 where job_id = $1`, [id])
  await query(
    `insert into holdfast.parked_outcome (job_id, attempt, session_id, outcome, reason, next_at) values ($1, 1, 1, '{}', 'refused', now() + interval '1 h')`,
    [id],
  )
  await hf.reap()
  const bulk = await carriedOut(hf, { operation: 'reschedule', delayMs: 0, filter: { queue } })
  expect(bulk).toMatchObject({ done: 0, skipped: 1 })
  expect(await hf.bulk.skipped(bulk.id)).toMatchObject([{ job: id, reason: 'parked' }])
})

test('text in the input is found in small and in large inputs, as written and as a value', async ({ open, given }) => {
  const hf = await open()
  const small = await given.queued({ input: { customer: 'acme "north"' } })
  const large = await given.queued({ input: { customer: 'acme', filler: 'x'.repeat(5_000) } })
  await given.queued({ input: { customer: 'zeta' } })
  const matched = async (text: string) =>
    (await hf.bulk.preview({ operation: 'cancel', filter: { text } })).sample.map(({ id }) => id)
  expect(await matched('acme')).toEqual([large.id, small.id])
  expect(await matched('acme "north"')).toEqual([small.id])
  expect(await matched('"customer":"acme"')).toEqual([large.id])
})

test('jobs that are submitted after a bulk operation was asked for are untouched, even if their ids are older', async ({
  open,
  query,
}) => {
  const hf = await open({ jobs: [noop] })
  await hf.submit(noop, undefined as never, later)
  const { id } = await hf.bulk.start({ operation: 'cancel', filter: { all: true } })
  const after = await hf.submit(noop, undefined as never, later)
  await query(queuedCrowd({ count: 1, id: `'${oldId}'::uuid`, runAt: `now() + interval '1 h'` }))
  // nobody carries it on before there is a reaper
  expect(await hf.bulk.get(id)).toMatchObject({ state: 'running', done: 0, isHeld: false })
  await hf.reap()
  expect(await ended(hf, id)).toMatchObject({ done: 1, skipped: 0 })
  expect(await hf.state(after.id)).toBe('queued')
  expect(await hf.state(oldId)).toBe('queued')
})

test('a job that ends after a bulk redo was asked for is not redone', async ({ open, given }) => {
  const hf = await open()
  const first = await given.finished('failed')
  const { id } = await hf.bulk.start({ operation: 'redo', filter: { kind: 'sample' } })
  const second = await given.finished('failed')
  await hf.reap()
  expect(await ended(hf, id)).toMatchObject({ done: 1, skipped: 0 })
  expect(await hf.state(first.id)).toBe('queued')
  expect(await hf.state(second.id)).toBe('failed')
})

test('a locked job is skipped and listed, and does not stop the rest', async ({ open, pool, query }) => {
  const hf = await open()
  await query(queuedCrowd({ count: 600, runAt: `now() + interval '1 h'` }))
  const [held] = await query<{ id: string }>('select id from holdfast.job order by id limit 1 offset 300')
  const release = await strangerHolds(pool, 'select from holdfast.ready where job_id = $1 for update', [held?.id])
  await hf.reap()
  const bulk = await carriedOut(hf, { operation: 'cancel', filter: { kind: 'sample' } })
  expect(bulk).toMatchObject({ state: 'finished', done: 599, skipped: 1 })
  expect(await hf.bulk.skipped(bulk.id)).toMatchObject([{ job: held?.id, reason: 'locked' }])
  await release()
  expect(await hf.state(String(held?.id))).toBe('queued')
})

test('a job that was locked for a moment is changed when the operation comes back to it', async ({
  open,
  pool,
  given,
}) => {
  const hf = await open()
  const { id } = await given.finished('failed')
  const release = await strangerHolds(pool, 'select from holdfast.outcome where job_id = $1 for update', [id])
  const { id: bulk } = await hf.bulk.start({ operation: 'redo', filter: { kind: 'sample' } })
  await hf.reap()
  await until(async () => (await hf.bulk.get(bulk)).skipped === 1, 'it is skipped')
  await release()
  expect(await ended(hf, bulk)).toMatchObject({ done: 1, skipped: 0 })
  expect(await hf.bulk.skipped(bulk)).toEqual([])
  expect(await hf.state(id)).toBe('queued')
})

test('a job that the database refuses to change is listed with the reason, and the rest are changed', async ({
  open,
  query,
}) => {
  const hf = await open()
  await query(queuedCrowd({ count: 300, runAt: `now() + interval '1 h'` }))
  const [bad] = await query<{ id: string }>('select id from holdfast.job order by id limit 1 offset 100')
  await query(
    `alter table holdfast.ready add constraint not_this check (job_id <> '${bad?.id}' or priority > 1) not valid`,
  )
  await hf.reap()
  const bulk = await carriedOut(hf, { operation: 'priority', priority: 1, filter: { kind: 'sample' } })
  expect(bulk).toMatchObject({ state: 'finished', done: 299, skipped: 1 })
  expect(await hf.bulk.skipped(bulk.id)).toMatchObject([
    { job: bad?.id, reason: 'refused', error: expect.stringContaining('not_this') },
  ])
})

test('a bulk operation that is stopped leaves the rest alone, and stays stopped', async ({ open, query }) => {
  const hf = await open()
  await query(queuedCrowd({ count: 500, runAt: `now() + interval '1 h'` }))
  const { id } = await hf.bulk.start({ operation: 'cancel', filter: { kind: 'sample' }, rate: 40 })
  await hf.reap()
  await until(async () => (await hf.bulk.get(id)).done > 0, 'some are cancelled')
  const stopped = await hf.bulk.stop(id, { by: 'ada', reason: 'enough' })
  expect(stopped).toMatchObject({ state: 'stopped', stoppedBy: 'ada', stopReason: 'enough' })
  expect(stopped.done).toBeLessThan(500)
  expect(await hf.bulk.stop(id)).toEqual(stopped)
  const [{ left } = { left: 0 }] = await query<{ left: string }>('select count(*) as left from holdfast.ready')
  expect(Number(left)).toBe(500 - stopped.done)
  expect(await eventsOf(hf, 'bulk.stopped')).toMatchObject([{ bulk: id, by: 'ada', reason: 'enough' }])
})

test('a rate bounds how many jobs a second are changed', async ({ open, query }) => {
  const hf = await open()
  await query(queuedCrowd({ count: 60, runAt: `now() + interval '1 h'` }))
  await hf.reap()
  const bulk = await carriedOut(hf, { operation: 'cancel', filter: { kind: 'sample' }, rate: 40 })
  expect(bulk.done).toBe(60)
  expect((bulk.endedAt as Date).getTime() - bulk.askedAt.getTime()).toBeGreaterThan(1_000)
})

test('items of a fan-out are not taken one by one unless asked', async ({ open }) => {
  const fan = defineJob('fan', {
    stages: [{ name: 'all', fanOut: () => [1, 2, 3], each: ({ signal }) => once(signal, 'abort') }],
  })
  const hf = await open({ jobs: [fan] })
  const working = await hf.work({ concurrency: 1 })
  const { id } = await hf.submit(fan, undefined as never)
  await until(async () => (await hf.state(id)) === 'waiting', 'it waits for its items')
  expect(await hf.bulk.preview({ operation: 'cancel', filter: { kind: 'fan' } })).toMatchObject({ count: 1 })
  expect(await hf.bulk.preview({ operation: 'cancel', filter: { kind: 'fan', items: true } })).toMatchObject({
    count: 4,
  })
  const bulk = await carriedOut(hf, { operation: 'cancel', filter: { kind: 'fan' } })
  expect(bulk).toMatchObject({ done: 1 })
  expect(await hf.state(id)).toBe('cancelled')
  await until(async () => (await hf.items(id)).every(({ state }) => state === 'cancelled'), 'its items are cancelled')
  await working.stop()
})

test('only queued jobs are cancelled if only those were asked for', async ({ open, given }) => {
  const hf = await open()
  const [running, queued] = [await given.running(), await given.queued()]
  await hf.reap()
  const bulk = await carriedOut(hf, { operation: 'cancel', filter: { kind: 'sample', state: 'queued' } })
  expect(bulk).toMatchObject({ done: 1, skipped: 0 })
  expect(await hf.state(queued.id)).toBe('cancelled')
  expect(await hf.state(running.id)).toBe('running')
})

test('a call that is repeated with the same id starts one operation', async ({ open, given }) => {
  const hf = await open()
  await given.queued()
  const id = '01890a5d-ac96-774b-bcce-b302099a8057'
  const first = await hf.bulk.start({ id, operation: 'cancel', filter: { kind: 'sample' } })
  expect(await hf.bulk.start({ id, operation: 'cancel', filter: { kind: 'sample' } })).toEqual(first)
  await expect(hf.bulk.start({ id, operation: 'cancel', filter: { all: true } })).rejects.toMatchObject({
    code: 'bulk_conflict',
  })
  expect(await hf.bulk.list()).toHaveLength(1)
})

test('a filter that is wrong, or matches nothing, is refused with what to do, and nothing changes', async ({
  open,
  given,
}) => {
  const hf = await open()
  await given.queued()
  const refused = (operation: object, code = 'option_invalid') =>
    expect(hf.bulk.start(operation as NewBulkOperation)).rejects.toMatchObject({ code })
  const filter = { kind: 'sample' }
  await refused({ operation: 'cancle', filter })
  await refused({ operation: 'cancel', filter: {} })
  await refused({ operation: 'cancel', filter: { tenant: 'default' } })
  await refused({ operation: 'cancel', filter: { kind: 'no such name!' } })
  await refused({ operation: 'cancel', filter: { kidn: 'sample' } })
  await refused({ operation: 'cancel', filter: { ...filter, state: 'failed' } })
  await refused({ operation: 'cancel', filter: { ...filter, state: 'tired' } })
  await refused({ operation: 'cancel', filter: { ...filter, state: [] } })
  await refused({ operation: 'cancel', filter: { ...filter, error: 'timeout' } })
  await refused({ operation: 'cancel', filter: { ...filter, all: true } })
  await refused({ operation: 'cancel', filter: { ...filter, text: '' } })
  await refused({ operation: 'cancel', filter: { ...filter, text: 'x'.repeat(201) } })
  await refused({ operation: 'cancel', filter: { since: new Date('2030-01-02'), until: new Date('2030-01-01') } })
  await refused({ operation: 'delete', filter: { ...filter, items: true } })
  await refused({ operation: 'cancel', filter, rate: 0 })
  await refused({ operation: 'cancel', filter, rate: 1.5 })
  await refused({ operation: 'cancel', filter, priority: 1 })
  await refused({ operation: 'priority', filter, priority: 5 })
  await refused({ operation: 'reschedule', filter })
  await refused({ operation: 'reschedule', filter, delayMs: -1 })
  await refused({ operation: 'cancel', filter, id: 'x' }, 'id_invalid')
  await refused({ operation: 'cancel', filter: { kind: 'nothing' } }, 'bulk_matches_nothing')
  await expect(hf.bulk.get('01890a5d-ac96-774b-bcce-b302099a8057')).rejects.toMatchObject({ code: 'bulk_not_found' })
  expect(await hf.bulk.list()).toEqual([])
})

test('failed jobs are grouped by kind and error, whatever numbers their messages contain', async ({
  open,
  query,
  given,
}) => {
  const hf = await open()
  const ids: string[] = []
  for (let n = 1; n <= 3; n++) ids.push((await given.finished('failed')).id)
  await query(
    `update holdfast.outcome set error = json_build_object('code', 'timeout', 'message', 'page ' || n || ' took too long')
    from (select job_id as id, row_number() over (order by job_id) as n from holdfast.outcome) as one where one.id = job_id`,
  )
  const one = await given.finished('failed', { kind: 'single' })
  await given.finished('succeeded')
  const failures = await hf.failures()
  expect(failures).toMatchObject({ count: 4, isAtLeast: false })
  expect(failures.groups).toMatchObject([
    {
      kind: 'sample',
      code: 'timeout',
      message: 'page # took too long',
      count: 3,
      latest: { id: ids[2], message: 'page 3 took too long' },
    },
    { kind: 'single', code: 'handler_failed', message: 'It broke.', count: 1, latest: { id: one.id } },
  ])
  expect((await hf.failures({ kind: 'single' })).groups).toHaveLength(1)
  expect((await hf.failures({ tenant: 'nobody' })).groups).toEqual([])
  expect((await hf.failures({ tenant: 'default' })).count).toBe(4)
})

test('failures with more errors than a scan groups are counted all the same, and said to be at least so many', async ({
  open,
  query,
}) => {
  const hf = await open()
  await query(
    `insert into holdfast.outcome (job_id, finished_at, attempt, stage, failures, crashes, is_flawed, state, kind, tenant, error)
    select gen_random_uuid(), now(), 1, 0, 1, 0, false, 'failed', 'sample', 'default',
      json_build_object('code', 'odd', 'message', translate(md5(number::text), '0123456789', 'ghijklmnop'))
    from generate_series(1, 1500) as number`,
  )
  const failures = await hf.failures({ limit: 1000 })
  expect(failures).toMatchObject({ count: 1_500, isAtLeast: true })
  expect(failures.groups).toHaveLength(1_000)
})
