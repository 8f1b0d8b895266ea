import { defineJob, type Holdfast } from 'holdfast'
import { textOf } from '#holdfast/postgres/sql'
import { claimDeliveries } from '#holdfast/webhooks/claim.sql'
import { Lanes } from '#holdfast/webhooks/lanes'
import { expect, type Fixtures, gate, test, until } from './fixtures.ts'
import { echo, hook, near, settled } from './webhooks/hooks.ts'
import { nameServer } from './webhooks/name-server.ts'
import { receiver } from './webhooks/receiver.ts'

const fromTheStart = { cursorTenants: [], cursors: [] }

/** An endpoint that is told of every submit, so that no worker is needed. */
function endpointOf(hf: Holdfast, tenant: string, url: string) {
  return hf.webhooks.create({ url, tenant, types: ['job.submitted'] })
}

/** How long a webhook of the neighbor takes from its submit to its receiver, in the middle of so many, one after the other. */
async function medianMs(hf: Holdfast, server: Awaited<ReturnType<typeof hook>>, count = 15): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < count; n++) {
    const before = server.received.length
    const startedAt = performance.now()
    await hf.submit(echo, n, { tenant: 'neighbor' })
    await server.got(before + 1)
    times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)[Math.floor(count / 2)] as number
}

/** Twice as long as when it is quiet, and what a busy machine adds to a few milliseconds. */
const bound = (quietMs: number) => 2 * quietMs + 100

/** Deliveries of these tenants, each with so many lanes and two in each. */
const backlog = (query: Fixtures['query'], tenants: number, lanes: number) =>
  query(
    `insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body)
     select row_number() over (), 'e', 'job.finished', 'tenant-' || tenant, 'lane-' || lpad(lane::text, 5, '0'), 'pending', ''
     from generate_series(1, ${tenants}) as tenant, generate_series(1, ${lanes}) as lane, generate_series(1, 2)`,
  )

test('a name server that never answers delays no neighbor', async ({ open }) => {
  await using names = await nameServer({ 'hooks.test': '127.0.0.1' })
  const server = await hook()
  const settings = { webhookNameServers: [names.address], webhookAllow: ['127.0.0.1/32', 'hooks.test'] }
  const hf = await open({ ...near, ...settings, webhookTimeoutMs: 60_000, webhookLookupMs: 60_000 })
  await endpointOf(hf, 'neighbor', `http://hooks.test:${server.port}`)
  await hf.deliver()
  const quietMs = await medianMs(hf, server)
  for (let n = 0; n < 20; n++) await endpointOf(hf, 'hostile', `https://n${n}.silent.test/`)
  await hf.submitMany(
    echo,
    Array.from({ length: 3 }, (_, input) => ({ input, tenant: 'hostile' })),
  )
  const stuck = () => new Set(names.asked.filter((name) => name.endsWith('silent.test')))
  await until(() => stuck().size === 16, 'the look-ups of the tenant are all under way')
  expect(await medianMs(hf, server)).toBeLessThan(bound(quietMs))
  // the name is looked up again for a new connection, too
  expect(await hf.webhooks.test((await endpointOf(hf, 'other', `http://hooks.test:${server.port}`)).id)).toMatchObject({
    kind: 'delivered',
  })
  expect(stuck().size).toBe(16)
  expect(await hf.webhooks.deliveries({ tenant: 'hostile', state: 'pending', limit: 1000 })).toHaveLength(60)
})

test('700 slow endpoints of one tenant delay no neighbor', async ({ open, query }) => {
  const opened = gate()
  let atOnce = 0
  let most = 0
  await using slow = await receiver(async (response) => {
    most = Math.max(most, ++atOnce)
    await opened.promise
    response.end()
  })
  const server = await hook()
  const hf = await open({ ...near, webhookTimeoutMs: 60_000 })
  await endpointOf(hf, 'neighbor', server.url)
  const { id } = await endpointOf(hf, 'hostile', slow.url)
  await query(
    `insert into holdfast.endpoint (id, tenant, url, types, items, headers, secret)
     select gen_random_uuid(), tenant, url, types, items, headers, secret
     from holdfast.endpoint, generate_series(2, 700) where id = $1`,
    [id],
  )
  await hf.deliver()
  const quietMs = await medianMs(hf, server)
  await hf.submitMany(
    echo,
    Array.from({ length: 2 }, (_, input) => ({ input, tenant: 'hostile' })),
  )
  // of the 256 that a tenant gets, slow receivers together get three quarters
  await until(() => atOnce === 192, 'the tenant has all that it may have')
  expect(await medianMs(hf, server)).toBeLessThan(bound(quietMs))
  expect(most).toBe(192)
  opened.open()
  await until(() => slow.received.length === 1_400, 'the slow ones get everything in the end')
})

test('a claim gives every tenant an equal share, and leaves room for who comes next', async ({ store, query }) => {
  await backlog(query, 4, 100)
  const lanes = new Lanes({ most: 100, mostPerTenant: 100 })
  const counts: Record<string, number> = {}
  const claim = async () => {
    const answer = await store.run(claimDeliveries, { ...lanes.room(), ...fromTheStart, claimMs: 60_000 })
    const claimed = answer.filter((row) => row.id !== null)
    for (const { tenant, lane } of claimed) {
      lanes.begin(tenant, lane)
      counts[tenant] = (counts[tenant] ?? 0) + 1
    }
    return claimed
  }
  while ((await claim()).length > 0);
  const [most, least] = [Math.max(...Object.values(counts)), Math.min(...Object.values(counts))]
  expect(Object.keys(counts)).toHaveLength(4)
  expect(least).toBeGreaterThan(0.7 * most)
  await query(
    `insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body)
     select 9999, 'e', 'job.finished', 'next', 'lane', 'pending', ''`,
  )
  expect(await claim()).toMatchObject([{ tenant: 'next' }])
})

test('a tenant with thousands of lanes has some of them looked at in each claim, and all in turn', async ({
  store,
  query,
}) => {
  await backlog(query, 1, 1_000)
  const walked = new Set<string>()
  let cursors: [string, string][] = []
  for (let turn = 0; turn < 5; turn++) {
    // new ones each time, so that there is room for all
    const room = new Lanes({ most: 512, mostPerTenant: 512 }).room()
    const from = { cursorTenants: cursors.map(([tenant]) => tenant), cursors: cursors.map(([, lane]) => lane) }
    const answer = await store.run(claimDeliveries, { ...room, ...from, claimMs: 60_000 })
    for (const row of answer) if (row.id !== null) walked.add(row.lane)
    cursors = answer.flatMap((row) => (row.id === null ? Object.entries(row.further ?? {}) : []))
    expect(walked.size).toBeLessThanOrEqual(250 * (turn + 1))
    if (turn < 4)
      expect(cursors).toEqual([['tenant-1', ['lane-00250', 'lane-00500', 'lane-00750', 'lane-01000'][turn]]])
  }
  expect(cursors).toEqual([])
})

test('a claim does not look at the lanes of a tenant that has no room', async ({ query }) => {
  await backlog(query, 1, 2_000)
  const lanes = new Lanes({ most: 512, mostPerTenant: 1 })
  lanes.begin('tenant-1', 'lane')
  const claim = claimDeliveries.build({ ...lanes.room(), ...fromTheStart, claimMs: 20_000 })
  const [told] = await query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, format json) ${textOf(claim)}`,
    [...claim.values],
  )
  const plan = told?.['QUERY PLAN'][0].Plan
  expect((plan?.['Shared Hit Blocks'] ?? 0) + (plan?.['Shared Read Blocks'] ?? 0)).toBeLessThan(20)
})

test('a tenant has only so many endpoints, also if it asks for many at once', async ({ open }) => {
  const hf = await open({ ...near, webhookEndpoints: 3 })
  const url = 'https://hooks.test/'
  const made = await Promise.allSettled(Array.from({ length: 12 }, () => endpointOf(hf, 'acme', url)))
  const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []))
  expect(refused).toHaveLength(9)
  expect(refused[0]).toMatchObject({
    code: 'too_many_endpoints',
    message:
      'The tenant acme has 3 webhook endpoints, which is the limit (setting webhookEndpoints). Remove one first.',
  })
  await endpointOf(hf, 'other', url)
  const [first] = await hf.webhooks.list({ tenant: 'acme' })
  await hf.webhooks.remove(first?.id ?? '')
  await endpointOf(hf, 'acme', url)
})

test('a tenant runs only so many tests at once, and they count as webhooks in flight', async ({ open }) => {
  const opened = gate()
  const slow = await receiver(async (response) => {
    await opened.promise
    response.end()
  })
  const fast = await hook()
  const hf = await open({ ...near, webhookTests: 2, webhookInFlight: 3, webhookTimeoutMs: 60_000 })
  const own = await hf.webhooks.create({ url: slow.url, tenant: 'acme', types: 'job.failed' })
  await endpointOf(hf, 'acme', slow.url)
  const other = await endpointOf(hf, 'other', fast.url)
  const tests = [hf.webhooks.test(own.id), hf.webhooks.test(own.id)]
  await until(() => slow.received.length === 2, 'both are under way')
  await expect(hf.webhooks.test(own.id)).rejects.toMatchObject({
    code: 'webhooks_busy',
    message: expect.stringContaining('already has 2 webhook tests in progress'),
  })
  expect(await hf.webhooks.test(other.id)).toMatchObject({ kind: 'delivered' })
  await hf.deliver()
  await hf.submitMany(echo, [
    { input: 1, tenant: 'acme' },
    { input: 2, tenant: 'acme' },
  ])
  await until(() => slow.received.length === 3, 'one delivery has the room that is left')
  expect(await hf.webhooks.deliveries({ tenant: 'acme', state: 'pending' })).toMatchObject(
    expect.arrayContaining([expect.objectContaining({ tries: 0 }), expect.objectContaining({ tries: 1 })]),
  )
  opened.open()
  expect(await Promise.all(tests)).toMatchObject([{ kind: 'delivered' }, { kind: 'delivered' }])
  await settled(hf, 'delivered', 2)
  await slow[Symbol.asyncDispose]()
})

test('a test is refused while the deliveries of its tenant take all the room', async ({ open }) => {
  const opened = gate()
  const slow = await receiver(async (response) => {
    await opened.promise
    response.end()
  })
  const hf = await open({ ...near, webhookInFlight: 1, webhookTimeoutMs: 60_000 })
  const own = await endpointOf(hf, 'acme', slow.url)
  await hf.deliver()
  await hf.submit(echo, 1, { tenant: 'acme' })
  await until(() => slow.received.length === 1, 'the delivery is under way')
  await expect(hf.webhooks.test(own.id)).rejects.toMatchObject({ code: 'webhooks_busy' })
  opened.open()
  await settled(hf, 'delivered')
  await slow[Symbol.asyncDispose]()
})

test('neither a test nor a delivery tells whether an internal name exists', async ({ open }) => {
  await using names = await nameServer({ 'db.corp.test': '10.0.0.5', 'meta.corp.test': '169.254.169.254' })
  const hf = await open({ webhookNameServers: [names.address] })
  const told: unknown[] = []
  for (const host of ['db.corp.test', 'meta.corp.test', 'nothing.corp.test']) {
    const { id } = await endpointOf(hf, host, `https://${host}/`)
    const { ms, ...result } = await hf.webhooks.test(id)
    expect(ms).toBeGreaterThanOrEqual(299)
    told.push(result)
  }
  const reason = 'The host name does not resolve to an address that webhooks may be sent to.'
  expect(told).toEqual(Array(3).fill({ kind: 'retry', reason }))
  await hf.deliver()
  await hf.submitMany(
    echo,
    ['db.corp.test', 'nothing.corp.test'].map((tenant) => ({ input: 1, tenant })),
  )
  const tried = await until(async () => {
    const all = await hf.webhooks.deliveries({ state: 'pending' })
    return all.every(({ error }) => error !== null) && all.length === 2 && all
  }, 'both were tried')
  expect(tried.map(({ error }) => error)).toEqual([reason, reason])
})

test('a malformed name server is refused at the start', async ({ open }) => {
  await expect(open({ webhookNameServers: ['dns.corp.test'] })).rejects.toMatchObject({ code: 'config_invalid' })
})

test('a schema that quotes half a character keeps nobody from being told, and its message arrives', async ({
  open,
}) => {
  const server = await hook()
  let problem: string | undefined
  const validate = (value: unknown) => (problem === undefined ? { value } : { issues: [{ message: problem }] })
  const strict = defineJob('strict', {
    input: { '~standard': { version: 1, vendor: 'test', validate } },
    run: () => {},
  })
  const hf = await open({ jobs: [strict, echo], ...near })
  await hf.webhooks.create({ url: server.url })
  await hf.submit(strict, null)
  problem = `got ${'😀'.slice(0, 1)}`
  await hf.work()
  await hf.submit(echo, null)
  await server.got(2)
  expect(server.told().flatMap(({ data }) => data.error?.message ?? [])).toEqual([
    expect.stringContaining('got \uFFFD'),
  ])
})

test('an event whose data the database cannot read keeps no other from being told', async ({ open, query }) => {
  const server = await hook()
  const hf = await open({ jobs: [echo], ...near })
  await hf.webhooks.create({ url: server.url, types: ['job.failed', 'job.submitted'] })
  const { id } = await hf.submit(echo, null)
  await query(
    `insert into holdfast.event_log (type, state, job_id, kind, tenant, data)
    values ('job.failed', 'failed', $1, 'echo', 'default', '{"code":"handler_failed","message":"\\ud800"}')`,
    [id],
  )
  await hf.submit(echo, null)
  await hf.deliver()
  await server.got(3)
  expect(
    server
      .told()
      .map(({ type }) => type)
      .sort(),
  ).toEqual(['job.failed', 'job.submitted', 'job.submitted'])
}, 60_000)
