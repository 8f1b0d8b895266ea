import type { Holdfast } from 'holdfast'
import { textOf } from '#holdfast/postgres/sql'
import { claimDeliveries } from '#holdfast/webhooks/claim.sql'
import { Lanes } from '#holdfast/webhooks/lanes'
import { expect, type Fixtures, gate, test, until } from './fixtures.ts'
import { type Answers, bodyOf, echo, hook, near, settled, verify } from './webhooks/hooks.ts'
import { closedPort, receiver } from './webhooks/receiver.ts'

type Query = Fixtures['query']

const fromTheStart = { cursorTenants: [], cursors: [] }

/** Told of every submit, so that no worker is needed. */
async function endpointAt(hf: Holdfast, url: string, how: { tenant?: string } = {}) {
  return hf.webhooks.create({ url, types: ['job.submitted', 'webhook.disabled'], ...how })
}

/** Waits until the only delivery has failed so often and is to be tried again, and answers it. */
function failedTimes(hf: Holdfast, query: Query, failures: number) {
  return until(async () => {
    const [row] = await query<{ failures: number }>(`select failures from holdfast.delivery where state = 'pending'`)
    return row?.failures === failures && (await hf.webhooks.deliveries({ state: 'pending' }))[0]
  }, `${failures} failures`)
}

/** Makes what waits for its next try due. */
const hasten = (query: Query) => query(`update holdfast.delivery set next_at = now() where state = 'pending'`)

/** As if it had been tried for a day. */
const age = (query: Query) =>
  query(
    `update holdfast.delivery set failed_at = failed_at - interval '1 day', next_at = now() where state = 'pending'`,
  )

test('all tries have the same id and the same bytes, and each is signed', async ({ open, query }) => {
  const server = await hook([500, 503, 408, 425, 429, 200])
  const hf = await open(near)
  const { secret } = await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, { deep: ['ü', 1.5] })
  for (let failures = 1; failures <= 5; failures++) {
    const waiting = await failedTimes(hf, query, failures)
    expect(waiting).toMatchObject({ tries: failures, status: [500, 503, 408, 425, 429][failures - 1] })
    expect(waiting?.nextAt?.getTime()).toBeGreaterThan(Date.now() + 1_000)
    await hasten(query)
  }
  await settled(hf, 'delivered')
  expect(server.received).toHaveLength(6)
  for (const got of server.received) verify(secret, got)
  expect(new Set(server.received.map(({ body }) => body)).size).toBe(1)
  expect(new Set(server.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
})

test('the wait grows with each failure, from seconds to hours', async ({ open, query }) => {
  const server = await hook([500])
  const hf = await open(near)
  await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  const waits: number[] = []
  for (let failures = 1; failures <= 9; failures++) {
    await failedTimes(hf, query, failures)
    const [row] = await query<{ s: number }>(
      `select extract(epoch from next_at - now())::float8 as s from holdfast.delivery`,
    )
    waits.push(row?.s ?? 0)
    await hasten(query)
  }
  expect(waits[0]).toBeGreaterThan(2.5)
  expect(waits[0]).toBeLessThan(7)
  expect(waits[8]).toBeGreaterThan(10_000)
  expect(waits[8]).toBeLessThan(18_001)
})

test.for<[Answers[number], string]>([
  [200, 'delivered'],
  [204, 'delivered'],
  [{ status: 302, headers: { location: 'https://example.com/' } }, 'dead'],
  [400, 'dead'],
  [401, 'dead'],
  [404, 'dead'],
  [410, 'dead'],
  [422, 'dead'],
  [408, 'pending'],
  [425, 'pending'],
  [429, 'pending'],
  [500, 'pending'],
  [503, 'pending'],
])('what is answered with %o is %s', async ([answer, state], { open, query }) => {
  const server = await hook([answer])
  const hf = await open(near)
  await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  const status = typeof answer === 'number' ? answer : answer.status
  const [row] = await until(async () => {
    const rows = await query<{ state: string; status: number }>(
      `select state, status from holdfast.delivery where status is not null`,
    )
    return rows.length > 0 && rows
  }, 'an outcome')
  expect(row).toEqual({ state, status })
})

test('a receiver that cannot be reached is tried again', async ({ open, query }) => {
  const hf = await open(near)
  await endpointAt(hf, `http://127.0.0.1:${await closedPort()}`)
  await hf.deliver()
  await hf.submit(echo, 1)
  expect(await failedTimes(hf, query, 1)).toMatchObject({ status: null, error: 'The connection was refused.' })
})

test('a receiver that does not answer is given up in time, and tried again', async ({ open, query }) => {
  const server = await receiver(() => {})
  const hf = await open({ ...near, webhookTimeoutMs: 300 })
  await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  expect(await failedTimes(hf, query, 1)).toMatchObject({
    status: null,
    error: 'The receiver did not respond within 300 ms.',
  })
  await server[Symbol.asyncDispose]()
})

test('a receiver that asks us to come later is asked no sooner', async ({ open, query }) => {
  const server = await hook([{ status: 429, headers: { 'retry-after': '7200' } }, 200])
  const hf = await open(near)
  await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  const waiting = await failedTimes(hf, query, 1)
  const [row] = await query<{ s: number }>(
    `select extract(epoch from next_at - now())::float8 as s from holdfast.delivery`,
  )
  expect(row?.s).toBeGreaterThan(7_100)
  expect(waiting?.error).toBe('The receiver answered 429.')
})

test('dead letters are listed, and replayed one by one', async ({ open }) => {
  const server = await hook([{ status: 400, body: 'What is this?' }, 200])
  const hf = await open(near)
  const endpoint = await endpointAt(hf, server.url)
  await hf.deliver()
  const job = await hf.submit(echo, 1)
  const [dead] = await settled(hf, 'dead')
  expect(dead).toMatchObject({ error: 'The receiver answered 400.', excerpt: 'What is this?', status: 400, tries: 1 })
  expect(
    await hf.webhooks.deliveries({ endpoint: endpoint.id, job: job.id, state: 'dead', tenant: 'default' }),
  ).toEqual([dead])
  await hf.webhooks.replay(dead?.id ?? '')
  const [delivered] = await settled(hf, 'delivered')
  expect(delivered).toMatchObject({ id: dead?.id, tries: 2, error: null, excerpt: null })
  expect(server.received[0]?.body).toBe(server.received[1]?.body)
  await hf.webhooks.replay(dead?.id ?? '')
  await server.got(3)
})

test('what is still to be sent cannot be replayed', async ({ open, query }) => {
  const server = await hook([500])
  const hf = await open(near)
  await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  const waiting = await failedTimes(hf, query, 1)
  await expect(hf.webhooks.replay(waiting?.id ?? '')).rejects.toMatchObject({ code: 'delivery_pending' })
})

test('dead letters are replayed in bulk, of one endpoint or tenant or since a time', async ({ open, query }) => {
  const [one, two] = [await hook([400, 400, 400, 200]), await hook([400, 200])]
  const hf = await open(near)
  const first = await endpointAt(hf, one.url)
  await endpointAt(hf, two.url, { tenant: 'b' })
  await hf.deliver()
  await hf.submitMany(echo, [{ input: 1 }, { input: 2 }, { input: 3 }, { input: 4, tenant: 'b' }])
  const dead = await settled(hf, 'dead', 4)
  const last = await hf.webhooks.deliveries({ state: 'dead', limit: 2 })
  expect(last).toEqual(dead.slice(0, 2))
  expect(await hf.webhooks.deliveries({ state: 'dead', before: last[1]?.id ?? '' })).toEqual(dead.slice(2))
  expect(await hf.webhooks.replayAll({ tenant: 'c' })).toBe(0)
  expect(await hf.webhooks.replayAll({ since: new Date(Date.now() + 60_000) })).toBe(0)
  expect(await hf.webhooks.replayAll({ endpoint: first.id, since: new Date(Date.now() - 60_000) })).toBe(3)
  await settled(hf, 'delivered', 3)
  expect(await hf.webhooks.replayAll({ tenant: 'b' })).toBe(1)
  await settled(hf, 'delivered', 4)
  expect(await hf.webhooks.replayAll()).toBe(0)
  expect(await hf.webhooks.replayAll({ state: 'delivered' })).toBe(4)
  await one.got(9)
  await two.got(3)
  expect(await query(`select from holdfast.delivery`)).toHaveLength(4)
})

test('an endpoint that answers 410 is switched off, and an event says so', async ({ open, query }) => {
  const [gone, other] = [await hook([410]), await hook()]
  const hf = await open(near)
  const endpoint = await endpointAt(hf, gone.url)
  await hf.webhooks.create({ url: other.url, types: 'webhook.*' })
  await hf.deliver()
  await hf.submit(echo, 1)
  const [told] = await other.got(1)
  expect(told && bodyOf(told)).toMatchObject({
    type: 'webhook.disabled',
    subject: null,
    data: {
      job: null,
      tenant: 'default',
      details: { endpoint: endpoint.id, origin: gone.url, why: 'The receiver answered 410: it is permanently gone.' },
    },
  })
  expect(await hf.webhooks.get(endpoint.id)).toMatchObject({
    disabledAt: expect.any(Date),
    disabledWhy: expect.stringContaining('410'),
  })
  await hf.submit(echo, 2)
  await until(
    async () => (await hf.webhooks.deliveries({ endpoint: endpoint.id, state: 'dead' })).length >= 3,
    'dead ones',
  )
  const dead = await hf.webhooks.deliveries({ endpoint: endpoint.id })
  expect(dead.map(({ error }) => error)).toContain('The endpoint is disabled.')
  expect(gone.received).toHaveLength(1)
  expect((await hf.audit()).violations).toEqual([])
  expect(await query(`select from holdfast.event where type = 'webhook.disabled'`)).toHaveLength(1)
})

test('an endpoint to which nothing could be delivered for as long as a delivery lives is switched off', async ({
  open,
  query,
}) => {
  const server = await hook([503])
  const hf = await open(near)
  const endpoint = await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submitMany(echo, [{ input: 1 }, { input: 2 }, { input: 3 }])
  await until(
    async () => (await query(`select from holdfast.delivery where failures = 1`)).length === 3,
    'three failures',
  )
  expect((await hf.webhooks.get(endpoint.id)).failingSince).toBeInstanceOf(Date)
  await query(`update holdfast.endpoint set failing_since = failing_since - interval '1 day'`)
  await query(`
    update holdfast.delivery set failed_at = failed_at - interval '1 day', next_at = now()
    where id = (select id from holdfast.delivery order by failed_at desc limit 1)`)
  await until(async () => (await hf.webhooks.get(endpoint.id)).disabledAt, 'it is switched off')
  const dead = await settled(hf, 'dead', 3)
  expect(
    dead.filter(({ error }) => error?.startsWith('The endpoint was disabled. No delivery has succeeded')),
  ).toHaveLength(2)
  expect(await query(`select from holdfast.event where type = 'webhook.disabled'`)).toHaveLength(1)
  expect(await hf.metrics()).toContain('holdfast_endpoints_disabled_total 1')
  await hf.webhooks.enable(endpoint.id)
  expect(await hf.webhooks.get(endpoint.id)).toMatchObject({ disabledAt: null, disabledWhy: null, failingSince: null })
})

test('an endpoint that refuses everything for as long as a delivery lives is switched off', async ({ open, query }) => {
  const server = await hook([404])
  const hf = await open(near)
  const endpoint = await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  await settled(hf, 'dead')
  await hf.submit(echo, 2)
  await settled(hf, 'dead', 2)
  expect(await hf.webhooks.get(endpoint.id)).toMatchObject({ disabledAt: null, failingSince: expect.any(Date) })
  await query(`update holdfast.endpoint set failing_since = failing_since - interval '1 day'`)
  await hf.submit(echo, 3)
  await until(async () => (await hf.webhooks.get(endpoint.id)).disabledAt, 'it is switched off')
  expect(await query(`select from holdfast.event where type = 'webhook.disabled'`)).toHaveLength(1)
})

test('an endpoint that succeeded meanwhile is not switched off when a delivery is given up', async ({
  open,
  query,
}) => {
  const server = await hook([503, 200, 503])
  const hf = await open(near)
  const endpoint = await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  await failedTimes(hf, query, 1)
  await hf.submit(echo, 2)
  await settled(hf, 'delivered')
  expect((await hf.webhooks.get(endpoint.id)).failingSince).toBe(null)
  await age(query)
  const [dead] = await settled(hf, 'dead')
  expect(dead).toMatchObject({ tries: 2, status: 503 })
  expect(await hf.webhooks.get(endpoint.id)).toMatchObject({ disabledAt: null, failingSince: expect.any(Date) })
})

test('what waits for an endpoint dies when it is switched off or removed by hand', async ({ open, query }) => {
  const hf = await open({ ...near, webhooks: false })
  const url = `http://127.0.0.1:${await closedPort()}`
  const [off, gone] = [await endpointAt(hf, url), await endpointAt(hf, url)]
  const { stop } = await hf.deliver()
  await hf.submit(echo, 1)
  await until(
    async () => (await query('select from holdfast.delivery where failures = 1')).length === 2,
    'two failures',
  )
  await stop()
  await hf.webhooks.disable(off.id, { why: 'It is being moved.' })
  await hf.webhooks.remove(gone.id)
  expect((await hf.webhooks.get(off.id)).disabledWhy).toBe('It is being moved.')
  expect(await query('select distinct state from holdfast.delivery')).toEqual([{ state: 'dead' }])
  expect((await hf.webhooks.deliveries({ endpoint: gone.id }))[0]?.error).toBe('The endpoint was removed.')
  expect((await hf.audit()).violations).toEqual([])
})

test('a delivery that was planned while its endpoint was disabled becomes a dead letter without being sent', async ({
  open,
  query,
}) => {
  const server = await hook()
  const hf = await open(near)
  const endpoint = await endpointAt(hf, server.url)
  const { stop } = await hf.deliver()
  await hf.submit(echo, 1)
  const [delivery] = await settled(hf, 'delivered')
  await stop()
  await hf.webhooks.disable(endpoint.id)
  await hf.webhooks.replay(delivery?.id ?? '')
  expect(await query(`select from holdfast.delivery where state = 'pending'`)).toHaveLength(1)
  await hf.deliver()
  expect(await settled(hf, 'dead')).toMatchObject([{ error: 'The endpoint is disabled.' }])
  expect(server.received).toHaveLength(1)
})

test('a slow receiver gets two at a time, and delays no fast one', async ({ open }) => {
  const opened = gate()
  let atOnce = 0
  let most = 0
  const slow = await receiver(async (response) => {
    most = Math.max(most, ++atOnce)
    await opened.promise
    atOnce--
    response.end()
  })
  const fast = await hook()
  const hf = await open(near)
  await endpointAt(hf, slow.url, { tenant: 'slow' })
  await endpointAt(hf, fast.url, { tenant: 'fast' })
  await hf.deliver()
  await hf.submitMany(
    echo,
    Array.from({ length: 20 }, (_, input) => ({ input, tenant: 'slow' })),
  )
  await until(() => atOnce === 2, 'the slow one is busy')
  await hf.submitMany(
    echo,
    Array.from({ length: 40 }, (_, input) => ({ input, tenant: 'fast' })),
  )
  await fast.got(40)
  expect(atOnce).toBe(2)
  opened.open()
  await settled(hf, 'delivered', 60)
  await slow[Symbol.asyncDispose]()
})

test('where there is no room for all that are slow, each gets its turn', async ({ store, query }) => {
  await query(
    `insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body)
     select number, number, 'job.finished', 'default', 'lane' || number % 9, 'pending', '' from generate_series(1, 900) as number`,
  )
  const lanes = new Lanes({ most: 16, mostPerTenant: 8 })
  const turns = new Map<string, number>()
  for (let round = 1; round <= 60; round++) {
    const answer = await store.run(claimDeliveries, { ...lanes.room(), ...fromTheStart, claimMs: 60_000 })
    const claimed = answer.filter((row) => row.id !== null)
    for (const { lane } of claimed) {
      lanes.begin('default', lane)
      turns.set(lane, (turns.get(lane) ?? 0) + 1)
    }
    for (const { lane } of claimed) lanes.end('default', lane, 2_000)
  }
  expect(turns.size).toBe(9)
  expect(Math.min(...turns.values())).toBeGreaterThan(20)
})

test('a sender that stops gives back what is in flight, and it is sent at once by another', async ({ open, query }) => {
  const held = await receiver((response) => {
    if (held.received.length > 1) response.end()
  })
  const hf = await open(near)
  await endpointAt(hf, held.url)
  const first = await hf.deliver()
  await hf.submit(echo, 1)
  await until(() => held.received.length === 1, 'the first try')
  await first.stop()
  expect(await query(`select state, next_at <= now() as is_due, failures from holdfast.delivery`)).toEqual([
    { state: 'pending', is_due: true, failures: 0 },
  ])
  const other = await open(near)
  await other.deliver()
  await settled(hf, 'delivered')
  expect(held.received[0]?.body).toBe(held.received[1]?.body)
  await held[Symbol.asyncDispose]()
})

test('a late outcome of a sender that was overtaken is refused', async ({ open, query }) => {
  const opened = gate()
  const held = await receiver(async (response) => {
    await opened.promise
    response.writeHead(500).end()
  })
  const hf = await open(near)
  await endpointAt(hf, held.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  await until(() => held.received.length === 1, 'the first try')
  // as if another sender had claimed it meanwhile, and had been answered
  await query(`update holdfast.delivery set tries = tries + 1, state = 'delivered', ended_at = now()`)
  opened.open()
  await hf.close()
  expect(await query('select state, failures from holdfast.delivery')).toEqual([{ state: 'delivered', failures: 0 }])
  await held[Symbol.asyncDispose]()
})

test('deliveries that ended long ago are forgotten, and no others', async ({ open, query }) => {
  const server = await hook([200, 500])
  const hf = await open({ ...near, deliveryRetentionMs: 3_600_000 })
  await endpointAt(hf, server.url)
  const { stop } = await hf.deliver()
  await hf.submit(echo, 1)
  await settled(hf, 'delivered')
  await hf.submit(echo, 2)
  await failedTimes(hf, query, 1)
  await stop()
  await query(`update holdfast.delivery set created_at = now() - interval '2 h', ended_at = ended_at - interval '2 h'`)
  await hf.reap()
  await until(async () => (await query('select from holdfast.delivery')).length === 1, 'the old one is gone')
  expect(await hf.webhooks.deliveries()).toMatchObject([{ state: 'pending' }])
})

test('the states of a delivery are those that the database allows', async ({ query }) => {
  const [row] = await query<{ text: string }>(
    `select pg_get_constraintdef(oid) as text from pg_constraint where conname = 'delivery_state'`,
  )
  expect(row?.text.match(/'\w+'/g)).toEqual(["'pending'", "'delivered'", "'dead'"])
})

test('webhooks go on as long as one of those that run them does', async ({ open }) => {
  const server = await hook()
  const hf = await open(near)
  await endpointAt(hf, server.url)
  const [first, second] = [await hf.deliver(), await hf.reap()]
  await first.stop()
  await hf.submit(echo, 1)
  await settled(hf, 'delivered', 1)
  // one stops while another starts
  const [, third] = await Promise.all([second.stop(), hf.deliver()])
  await hf.submit(echo, 2)
  await settled(hf, 'delivered', 2)
  await third.stop()
})

test('whatever commits in whatever order is planned, once', async ({ open, query }) => {
  const hf = await open(near)
  const { id } = await endpointAt(hf, 'https://example.com')
  await hf.webhooks.disable(id)
  await hf.deliver()
  const writers = await Promise.all([1, 2, 3].map(() => open({ poolSize: 4 })))
  await Promise.all(
    Array.from({ length: 600 }, (_, n) => writers[n % 3]?.submitMany(echo, [{ input: n }, { input: n }])),
  )
  const counts = `select (select count(*)::int from holdfast.event where type = 'job.submitted') as events, (select count(*)::int from holdfast.delivery) as deliveries,
    (select seq from holdfast.event_cursor)::int as cursor, (select max(seq)::int from holdfast.event) as top`
  const [row] = await until(async () => {
    const rows = await query<{ events: number; deliveries: number; cursor: number; top: number }>(counts)
    return rows[0] && rows[0].cursor >= rows[0].top && rows
  }, 'the planner has read everything')
  expect(row).toMatchObject({ events: 1_200, deliveries: 1_200 })
  expect((await hf.audit()).violations).toEqual([])
})

test('a claim touches few pages, however many deliveries wait in a lane, are scheduled, or have ended', async ({
  query,
}) => {
  await query(`
    insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, next_at, ended_at, body)
    select n, 'e', 'job.finished', 't', 'lane-' || n % 3, case when n % 3 = 2 then 'dead' else 'pending' end,
      now() + case when n % 3 = 1 then interval '1 day' else interval '-1 h' end, case when n % 3 = 2 then now() end, '{}'
    from generate_series(1, 60000) as n`)
  const room = new Lanes({ most: 512, mostPerTenant: 256 }).room()
  const claim = claimDeliveries.build({ ...room, ...fromTheStart, claimMs: 20_000 })
  for (const statistics of ['stale', 'fresh']) {
    if (statistics === 'fresh') await query('analyze holdfast.delivery')
    const [told] = await query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
      `explain (analyze, buffers, format json) ${textOf(claim)}`,
      [...claim.values],
    )
    const plan = told?.['QUERY PLAN'][0].Plan
    expect((plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0)).toBeLessThan(200)
  }
  expect(await query('select lane from holdfast.delivery where tries > 0')).toEqual(Array(4).fill({ lane: 'lane-0' }))
})

test('what is counted can be read', async ({ open }) => {
  const server = await hook([200, 400])
  const hf = await open(near)
  await endpointAt(hf, server.url)
  await hf.deliver()
  await hf.submit(echo, 1)
  await settled(hf, 'delivered')
  await hf.submit(echo, 2)
  await settled(hf, 'dead')
  const metrics = await until(async () => {
    const text = await hf.metrics()
    return text.includes('outcome="dead"} 1') && text
  }, 'the metrics')
  expect(metrics).toContain('holdfast_deliveries_total{outcome="delivered"} 1')
  expect(metrics).toContain('holdfast_oldest_delivery_seconds 0')
})
