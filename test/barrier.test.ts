import { addItems, openBarrier } from '#holdfast/fan-out/fan-out.sql'
import type { Fence } from '#holdfast/job/id'
import { makeSettler } from '#holdfast/settle/settle'
import { add, batchOf, claimItems, fail, finish, openFor, producing, seal, waiting } from './barrier/given.ts'
import { expect, test, until } from './fixtures.ts'
import type { Running } from './given.ts'
import { queueAgain } from './places.ts'

const joins = `select count(*)::int as n from holdfast.event where type = 'job.joined'`

test('the last two items settled at the same moment by two connections fire one join', { timeout: 90_000 }, async ({
  given,
  store,
  hf,
  query,
}) => {
  const rounds = 100
  for (let round = 0; round < rounds; round++) {
    const made = await waiting({ given, store }, { items: 2 })
    const [one, two] = (await claimItems({ given }, made)) as [Running, Running]
    await Promise.all([finish(store, [one]), finish(store, [two])])
    expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  }
  expect(await query(joins)).toEqual([{ n: rounds }])
  expect((await hf.audit()).violations).toEqual([])
})

test('a seal that races with the settle of the last item fires one join', { timeout: 90_000 }, async ({
  given,
  store,
  hf,
  query,
}) => {
  const rounds = 100
  for (let round = 0; round < rounds; round++) {
    const made = await producing({ given, store }, { items: 1 })
    const items = await claimItems({ given }, made)
    await Promise.all(round % 2 ? [seal(store, made), finish(store, items)] : [finish(store, items), seal(store, made)])
    expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  }
  expect(await query(joins)).toEqual([{ n: rounds }])
  expect((await hf.audit()).violations).toEqual([])
})

test('a settle that began before its parent was claimed and sealed still fires the join', async ({
  given,
  store,
  pool,
  hf,
  query,
}) => {
  const made = await producing({ given, store }, { items: 2 })
  const items = await claimItems({ given }, made)
  await queueAgain(query, [made.parent.id])
  // the settle has taken its snapshot, and waits for an item that somebody else holds
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from holdfast.lease where id = $1 for update', [items[1]?.leaseId])
  const settling = finish(store, items)
  const isWaiting = `select from pg_stat_activity where query like '/* job.finish */%' and wait_event_type = 'Lock' and datname = current_database()`
  await until(async () => (await query(isWaiting)).length === 1, 'the settle waits')
  const [again] = (await claimItems({ given }, made)) as [Running]
  expect(again).toMatchObject({ id: made.parent.id, attempt: 2 })
  await openFor(store, again)
  expect(await seal(store, { parent: again })).toMatchObject([{ count: 1, places: null }])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'waiting' })
  await holder.query('commit')
  holder.release()
  await settling
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await query(joins)).toEqual([{ n: 1 }])
  expect((await hf.audit()).violations).toEqual([])
})

test('an item settled twice counts once', async ({ given, store, hf }) => {
  const made = await waiting({ given, store }, { items: 2, tolerate: { count: 2 } })
  const [one] = (await claimItems({ given }, made)) as [Running]
  const answers = await Promise.all([finish(store, [one]), finish(store, [one]), fail(store, [one])])
  expect(answers.map(([answer]) => answer?.count).sort()).toEqual([0, 0, 1])
  expect(await finish(store, [one])).toMatchObject([{ count: 0, places: null }])
  const [progress] = await hf.fanOuts(made.parent.id)
  expect((progress?.succeeded ?? 0) + (progress?.failed ?? 0)).toBe(1)
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'waiting' })
})

test('many items that many connections settle in groups are all counted, and fire one join', {
  timeout: 60_000,
}, async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 600, tolerate: { share: 1 } })
  const items = await claimItems({ given }, made)
  const groups = Array.from({ length: 60 }, (_, n) => items.slice(n * 10, n * 10 + 10))
  await Promise.all(groups.map((group, n) => (n % 3 ? finish(store, group) : fail(store, group))))
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([
    { total: 600, succeeded: 400, failed: 200, cancelled: 0, running: 0, queued: 0, isComplete: true },
  ])
  expect(await query(joins)).toEqual([{ n: 1 }])
  expect((await hf.audit()).violations).toEqual([])
})

test('a batch with items of several barriers counts each where it belongs', async ({ given, store, hf }) => {
  const sessionId = await given.session()
  const mades = await Promise.all([1, 2, 3].map(() => waiting({ given, store }, { items: 3 })))
  const items: Running[] = []
  for (const made of mades) items.push(...(await claimItems({ given }, made)).map((item) => ({ ...item, sessionId })))
  expect(await finish(store, items)).toMatchObject([{ count: 9, places: null }])
  for (const { parent } of mades) expect(await hf.get(parent.id)).toMatchObject({ state: 'queued' })
})

test('a seal after all items have ended joins at once', async ({ given, store, hf, query }) => {
  const made = await producing({ given, store }, { items: 3 })
  await finish(store, await claimItems({ given }, made))
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'running' })
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ total: null, succeeded: 3, isComplete: 'unknown' }])
  await seal(store, made)
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await query(joins)).toEqual([{ n: 1 }])
})

test('a producer that lost its lease opens nothing, adds nothing and seals nothing', async ({
  given,
  store,
  query,
}) => {
  const stale = await given.attemptThatWasLost()
  const opening = {
    fence: stale,
    id: '01890a5d-ac96-774b-bcce-b302099a8057',
    count: null,
    share: null,
    expiresMs: null,
  }
  expect(await store.run(openBarrier, opening)).toEqual([])
  const [successor] = await given.claim({ sessionId: await given.session(), queue: stale.queue })
  const mine = { ...stale, ...(successor as object) } as typeof stale
  const barrier = await openFor(store, mine)
  expect(await store.run(addItems, batchOf({ parent: stale, barrier }, 3))).toMatchObject([
    { is_mine: false, added: 0 },
  ])
  expect(await seal(store, { parent: stale })).toMatchObject([{ count: 0, places: null }])
  expect(await query('select sealed_at, armed_at from holdfast.barrier')).toEqual([{ sealed_at: null, armed_at: null }])
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 1 },
  ])
  expect(await add(store, { parent: mine, barrier }, 2)).toHaveLength(2)
})

test('a fan-out by a worker that lost its lease is refused and recorded', async ({ given, store, query }) => {
  const stale = await given.attemptThatWasLost()
  const refused: Fence[] = []
  const settler = makeSettler({
    store,
    batchSize: 500,
    givenUp: new AbortController().signal,
    onRefused: (fences) => refused.push(...fences),
    onError: (error) => {
      throw error
    },
  })
  expect(await settler.settle({ fence: stale, outcome: { move: 'fanOut' } })).toBe('lease_lost')
  expect(refused).toHaveLength(1)
  expect(await query('select write from holdfast.refusal')).toEqual([{ write: 'fanOut' }])
})

test('items that are added twice are there once, live or finished', async ({ given, store, query, hf }) => {
  const made = await producing({ given, store }, { items: 0 })
  const batch = batchOf(made, 4)
  expect(await store.run(addItems, batch)).toMatchObject([{ added: 4 }])
  expect(await store.run(addItems, batch)).toMatchObject([{ added: 0 }])
  await finish(store, (await claimItems({ given }, made)).slice(0, 2))
  expect(await store.run(addItems, batch)).toMatchObject([{ is_mine: true, added: 0 }])
  await seal(store, made)
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ total: 4, succeeded: 2 }])
  expect(await query(`select count(*)::int as n from holdfast.event where type = 'job.submitted'`)).toEqual([{ n: 5 }])
})

test('an item that ends while a second producer adds it again stays ended', async ({
  given,
  store,
  pool,
  hf,
  query,
}) => {
  const made = await producing({ given, store }, { items: 0 })
  const batch = batchOf(made, 2)
  await store.run(addItems, batch)
  const items = await claimItems({ given }, made)
  // the second add has taken its snapshot, in which the items live, and waits for the parent's row
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('select from holdfast.lease where id = $1 for update', [made.parent.leaseId])
  const adding = store.run(addItems, batch)
  const isWaiting = `select from pg_stat_activity where query like '/* barrier.add */%' and wait_event_type = 'Lock' and datname = current_database()`
  await until(async () => (await query(isWaiting)).length === 1, 'the add waits')
  await finish(store, items)
  await holder.query('commit')
  holder.release()
  expect(await adding).toMatchObject([{ is_mine: true, added: 0 }])
  await seal(store, made)
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ total: 2, succeeded: 2, queued: 0 }])
  expect((await hf.audit()).violations).toEqual([])
})

test('an open barrier that is armed again by a later attempt resets its expiry', async ({ given, store, query }) => {
  const parent = await given.running()
  const first = await openFor(store, parent, { expiresMs: 1_000 })
  const second = await openFor(store, parent, { expiresMs: 3_600_000 })
  expect(second.id).toBe(first.id)
  expect(await query(`select expires_at > now() + interval '50 min' as is_later from holdfast.barrier`)).toEqual([
    { is_later: true },
  ])
})

test('an item that is retried, released or revived is not counted until it ends', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await waiting({ given, store }, { items: 1 })
  const [item] = (await claimItems({ given }, made)) as [Running]
  await queueAgain(query, [item.id])
  expect(await finish(store, [item])).toMatchObject([{ count: 0, places: null }])
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 0, queued: 1, isComplete: false }])
  await finish(store, await claimItems({ given }, made))
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ succeeded: 1, isComplete: true }])
})
