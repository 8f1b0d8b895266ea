import { quarantineJobs } from '#holdfast/reaper/quarantine.sql'
import { claimItems, fail, finish, producing, waiting } from './barrier/given.ts'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { type Swept, sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'
import type { Running } from './given.ts'
import { makeWait, setCrashes, takeOut } from './places.ts'

// Each class of the catalogue that concerns barriers. Where a process dies, a real one does.

const told = ({ healed }: Swept) => healed.map(({ orphan, message }) => ({ orphan, message }))

test('a producer that died partway through adds no item twice and seals once', async ({ url, hf, query }) => {
  const settings = { ...swift, batchSize: 10 }
  const first = await startMember({ url, settings })
  const { id } = await hf.submit(kinds.fan, { items: 50, pauseAt: 35 } as never)
  await first.heard('the producer is half-way', (line) => line.paused !== undefined)
  const added =
    'select count(*)::int as n from holdfast.job_status where finished_at is null and barrier_id is not null'
  await until(async () => (await query(added))[0]?.n === 35, 'what it gave so far is there')
  const second = await startMember({ url, settings })
  for (const gate of ['produce', 'parts', 'first']) second.order({ open: gate })
  await first.kill('SIGKILL')
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the fan-out ends')
  expect((await hf.get(id))?.outputs).toEqual({ all: { total: 50, succeeded: 50, failed: 0, cancelled: 0 } })
  expect((await hf.timeline(id)).map(({ type }) => type)).toEqual([
    'job.submitted',
    'job.revived',
    'job.fanned_out',
    'job.joined',
    'job.finished',
  ])
  expect(
    await query(
      'select count(*)::int as n, count(distinct position)::int as places from holdfast.job_status where finished_at is not null and is_part',
    ),
  ).toEqual([{ n: 50, places: 50 }])
  expect((await hf.audit()).violations).toEqual([])
})

test('items whose worker is killed run again on another one, and each counts once', async ({ url, hf }) => {
  const first = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.fan, { items: 8 } as never)
  await until(() => first.lines.filter((line) => line.part).length === 8, 'all items run')
  await until(async () => (await hf.get(id))?.state === 'waiting', 'the parent waits')
  const second = await startMember({ url, settings: swift })
  for (const gate of ['parts', 'first']) second.order({ open: gate })
  await first.kill('SIGKILL')
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the fan-out ends')
  expect((await hf.get(id))?.outputs).toEqual({ all: { total: 8, succeeded: 8, failed: 0, cancelled: 0 } })
  expect((await hf.items(id)).every(({ attempt }) => attempt === 2)).toBe(true)
  expect((await hf.audit()).violations).toEqual([])
})

test('a drained barrier whose join never fired is joined', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 2 })
  await finish(store, await claimItems({ given }, made))
  await unjoin(query, made.parent.id, made.barrier.id)
  expect(told(await sweepOf(store))).toEqual([
    { orphan: 'drained-not-joined', message: 'all work was done, but the continuation had never fired; joined' },
  ])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 2, failed: 0, isComplete: true }])
  expect(told(await sweepOf(store))).toEqual([])
})

test('items deleted under an open barrier count as failed', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3, tolerate: { count: 2 } })
  const items = await claimItems({ given }, made)
  const lost = items.slice(0, 2).map(({ id }) => id)
  await takeOut(query, lost)
  await query('delete from holdfast.job where id = any($1)', [lost])
  expect(told(await sweepOf(store))).toEqual([])
  await finish(store, items.slice(2))
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'waiting' })
  expect(told(await sweepOf(store))).toEqual([
    { orphan: 'items-lost', message: '2 items are missing from the ledger; counted as failed and joined' },
  ])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 1, failed: 2 }])
})

test('a negative counter is recounted', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3 })
  const items = await claimItems({ given }, made)
  await query(`update holdfast.barrier set succeeded = -2, moved_at = now() - interval '1 min'`)
  expect(told(await sweepOf(store))).toEqual([
    { orphan: 'negative-count', message: 'the counters were off by 2; recounted from the ledger' },
  ])
  expect(await query('select succeeded from holdfast.barrier')).toEqual([{ succeeded: 0 }])
  await finish(store, items)
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
})

test('counters that drifted are recounted from the ledger', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3, tolerate: { count: 3 } })
  const items = await claimItems({ given }, made)
  await fail(store, items.slice(0, 1))
  await query(`update holdfast.barrier set succeeded = 2, failed = 0`)
  expect((await hf.audit()).violations).toMatchObject([{ invariant: 'counters-match-ledger' }])
  // while it moves, it is left alone: a settle may be under way
  expect(told(await sweepOf(store))).toEqual([])
  await query(`update holdfast.barrier set moved_at = now() - interval '1 min'`)
  expect(told(await sweepOf(store))).toEqual([
    { orphan: 'counter-drift', message: 'the counters were off by 3; recounted from the ledger' },
  ])
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 0, failed: 1 }])
  expect((await hf.audit()).violations).toEqual([])
})

test('a fan-out past its expiry is stopped', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3, expiresMs: 1 })
  const [one] = (await claimItems({ given }, made)) as [Running]
  await finish(store, [one])
  await until(
    async () => (await query('select from holdfast.barrier where expires_at < now()')).length === 1,
    'it expires',
  )
  expect(told(await sweepOf(store))).toEqual([
    { orphan: 'barrier-expired', message: 'expired with unfinished items; cancelled the rest' },
    { orphan: 'stop-unfinished', message: '2 items were still live; cancelled' },
  ])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 1, cancelled: 2, isComplete: true }])
  const items = await hf.items(made.parent.id, { state: 'cancelled' })
  expect(items[0]?.error?.message).toMatch(/expired/)
})

test('at its expiry, work left, work done and a negative count are told apart in three messages', async ({
  given,
  store,
  query,
}) => {
  const how = { items: 1, expiresMs: 1, tolerate: { count: 1 } }
  const [left, done, negative] = [
    await waiting({ given, store }, how),
    await waiting({ given, store }, how),
    await waiting({ given, store }, how),
  ]
  for (const made of [done, negative]) {
    await finish(store, await claimItems({ given }, made))
    await unjoin(query, made.parent.id, made.barrier.id)
  }
  await query('update holdfast.barrier set succeeded = -1 where id = $1', [negative.barrier.id])
  await until(
    async () => (await query('select from holdfast.barrier where expires_at < now()')).length === 3,
    'all expire',
  )
  const { healed } = await sweepOf(store)
  const messages = (id: string) => healed.filter(({ job }) => job === id).map(({ message }) => message)
  expect(messages(left.parent.id)[0]).toBe('expired with unfinished items; cancelled the rest')
  expect(messages(done.parent.id)).toEqual([
    'all work was done, past its expiry, but the continuation had never fired; joined',
  ])
  expect(messages(negative.parent.id)).toEqual([
    'a counter was negative, past its expiry; recounted from the ledger and joined',
  ])
})

test('work left at the expiry whose workers died is revived, not failed', { timeout: 60_000 }, async ({
  url,
  hf,
  query,
}) => {
  const first = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.fan, { items: 3 } as never)
  await until(() => first.lines.filter((line) => line.part).length === 3, 'all items run')
  await until(async () => (await hf.get(id))?.state === 'waiting', 'the parent waits')
  await first.kill('SIGKILL')
  await query(`update holdfast.barrier set opened_at = now() - interval '2 min', sealed_at = now() - interval '1 min',
    armed_at = now() - interval '1 min', expires_at = now()`)
  const second = await startMember({ url, settings: swift })
  // no revived item may end before the leader has judged the expiry: it would leave nothing to judge
  const judged = `select stopped_at is not null as is_stopped, expires_at > now() as is_put_off from holdfast.barrier
    where stopped_at is not null or extended > 0`
  expect(await until(async () => (await query(judged))[0], 'the expiry is judged')).toEqual({
    is_stopped: false,
    is_put_off: true,
  })
  for (const gate of ['parts', 'first']) second.order({ open: gate })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the fan-out ends')
  expect((await hf.items(id)).map(({ state, attempt }) => [state, attempt])).toEqual(Array(3).fill(['succeeded', 2]))
})

test('a stop that was interrupted is finished', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 5 })
  const items = await claimItems({ given }, made)
  // by hand: as if its worker had died between the settle and the stop
  expect(await fail(store, items.slice(0, 1))).toMatchObject([{ stopped: [made.barrier.id] }])
  expect(
    await query(
      'select count(*)::int as n from holdfast.job_status where finished_at is null and barrier_id is not null',
    ),
  ).toEqual([{ n: 4 }])
  expect(told(await sweepOf(store))).toEqual([
    { orphan: 'stop-unfinished', message: '4 items were still live; cancelled' },
  ])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ failed: 1, cancelled: 4 }])
  expect(await finish(store, items.slice(1))).toMatchObject([{ count: 0, places: null }])
})

test('the items of a parent that failed while fanning out are cancelled', async ({ given, store, hf, query }) => {
  const made = await producing({ given, store }, { items: 3 })
  const [running] = (await claimItems({ given }, made)) as [Running]
  await fail(store, [made.parent])
  expect(told(await sweepOf(store))).toEqual([
    { orphan: 'fan-out-abandoned', message: '3 items were still live; cancelled' },
  ])
  expect(await finish(store, [running])).toMatchObject([{ count: 0, places: null }])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'failed' })
  expect(await query('select joined_at is not null as is_closed from holdfast.barrier')).toEqual([{ is_closed: true }])
  expect(await query(`select from holdfast.event where type = 'job.joined'`)).toEqual([])
  expect((await hf.audit()).violations).toEqual([])
})

test('the items of a barrier that is gone are cancelled, and nothing fires', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 3 })
  const [late] = (await claimItems({ given }, made)) as [Running]
  await query('delete from holdfast.barrier')
  // a late item for a barrier that is gone is abandoned
  expect(await finish(store, [late])).toMatchObject([{ count: 1, places: null }])
  expect(await query(`select from holdfast.event where type = 'job.joined'`)).toEqual([])
  expect(told(await sweepOf(store))[0]).toEqual({
    orphan: 'item-without-barrier',
    message: '2 items no longer had a barrier; cancelled',
  })
  expect((await hf.get(made.items[0] as string))?.state).toMatch(/cancelled|succeeded/)
})

test('a waiting job that no barrier will join continues', async ({ given, store, hf, query }) => {
  const gone = await waiting({ given, store }, { items: 1 })
  const lost = await waiting({ given, store }, { items: 1 })
  await query('delete from holdfast.barrier where id = $1', [gone.barrier.id])
  await finish(store, await claimItems({ given }, lost))
  await makeWait(query, lost.parent.id)
  expect((await hf.audit()).violations).toMatchObject([
    { invariant: 'waiting-has-barrier' },
    { invariant: 'item-has-barrier' },
  ])
  const orphans = told(await sweepOf(store)).map(({ orphan }) => orphan)
  expect(orphans.filter((name) => name === 'waiting-without-barrier')).toHaveLength(2)
  for (const { parent } of [gone, lost]) expect(await hf.get(parent.id)).toMatchObject({ state: 'queued' })
  expect(told(await sweepOf(store))).toEqual([])
})

test('an item that is quarantined counts as failed and fires the join', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 1, tolerate: { count: 1 } })
  const [item] = (await claimItems({ given }, made)) as [Running]
  await setCrashes(query, 2, [item.id])
  await query(`update holdfast.session set ended_at = now(), ended_by = 'child exited' where id = $1`, [item.sessionId])
  const { quarantined } = await sweepOf(store)
  expect(quarantined).toMatchObject([{ id: item.id }])
  expect(await store.run(quarantineJobs, { orphans: quarantined })).toEqual([])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ failed: 1, isComplete: true }])
})

test('an old row with a state that nobody knows crashes no sweep', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 2, tolerate: { count: 1 } })
  const [one, two] = (await claimItems({ given }, made)) as [Running, Running]
  await finish(store, [one])
  await query('alter table holdfast.outcome drop constraint outcome_state, disable trigger outcome_stands')
  await query(`update holdfast.outcome set state = 'exploded' where job_id = $1`, [one.id])
  await query(`update holdfast.barrier set moved_at = now() - interval '1 min'`)
  expect((await sweepOf(store)).problems).toEqual([])
  await finish(store, [two])
  expect((await sweepOf(store)).problems).toEqual([])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
})

test('two sweeps at once fire one join', async ({ given, store, query }) => {
  for (let round = 0; round < 10; round++) {
    const made = await waiting({ given, store }, { items: 1 })
    await finish(store, await claimItems({ given }, made))
    await unjoin(query, made.parent.id, made.barrier.id)
    await query(`delete from holdfast.event_log where type = 'job.joined'`)
    await Promise.all([sweepOf(store), sweepOf(store), sweepOf(store)])
    expect(await query(`select from holdfast.event where type = 'job.joined'`)).toHaveLength(1)
  }
})

type Query = (text: string, values?: unknown[]) => Promise<unknown[]>

/** Takes a join back by hand: as if the last settle had never counted. */
async function unjoin(query: Query, parent: string, barrier: string): Promise<void> {
  await query('update holdfast.barrier set joined_at = null, succeeded = succeeded - 1 where id = $1', [barrier])
  await waitAgain(query, parent)
}

/** Lets a job wait that was joined, as if the join had never reached it. */
async function waitAgain(query: Query, parent: string): Promise<void> {
  await makeWait(query, parent)
  await query(`delete from holdfast.event_log where type = 'job.joined' and job_id = $1`, [parent])
}
