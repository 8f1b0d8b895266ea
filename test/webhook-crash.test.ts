import type { ServerResponse } from 'node:http'
import { memberKinds as kinds, type MemberOptions, startMember, swift } from './crash/member.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { hook, near, settled, verify } from './webhooks/hooks.ts'
import { receiver } from './webhooks/receiver.ts'

const settings = {
  ...swift,
  webhookAllow: near.webhookAllow.join(','),
  webhookTimeoutMs: 800,
  readerLeaseMs: 600,
  readerBeatMs: 150,
} satisfies MemberOptions['settings']

/** The process that plans. */
async function planner(query: Fixtures['query']): Promise<number> {
  const [reader] = await until(async () => {
    const rows = await query<{ pid: number }>(`
      select reader.pid from holdfast.event_cursor as cursor join holdfast.event_reader as reader on reader.id = cursor.reader_id
      where cursor.group_name = 'webhooks' and reader.lease_until > now()`)
    return rows.length > 0 && rows
  }, 'somebody plans')
  return reader?.pid as number
}

test('a webhook whose sender was killed with -9 is sent again by another, under the same id', async ({
  open,
  url,
  query,
}) => {
  const server = await receiver((response) => {
    // the first call is never answered
    if (server.received.length > 1) response.end()
  })
  const hf = await open(near)
  const { secret } = await hf.webhooks.create({ url: server.url, types: 'job.submitted' })
  const first = await startMember({ url, role: 'deliver', settings })
  await hf.submit(kinds.hold, null)
  await until(() => server.received.length === 1, 'the call')
  await first.kill('SIGKILL')
  const second = await startMember({ url, role: 'deliver', settings })
  const [delivered] = await settled(hf, 'delivered')
  const claimMs = settings.webhookTimeoutMs + 5_000
  const [row] = await query<{ ms: number }>(
    'select extract(epoch from claimed_at - created_at) * 1000 as ms from holdfast.delivery',
  )
  expect(Number(row?.ms)).toBeLessThan(claimMs + settings.pollMs + 5_000)
  expect(delivered).toMatchObject({ tries: 2 })
  for (const got of server.received) verify(secret, got)
  expect(server.received[1]?.body).toBe(server.received[0]?.body)
  expect(server.received[1]?.headers['webhook-id']).toBe(server.received[0]?.headers['webhook-id'])
  expect((await hf.audit()).violations).toEqual([])
  await second.stop()
  await server[Symbol.asyncDispose]()
})

test('a webhook arrives although its process was killed with -9 right after the settle of the job', async ({
  open,
  url,
  query,
}) => {
  const server = await hook()
  const hf = await open(near)
  const { secret } = await hf.webhooks.create({ url: server.url })
  // so that nothing of it plans or sends before it is killed
  const worker = await startMember({ url, kinds: ['hold'], settings: { ...settings, webhooks: false } })
  const job = await hf.submit(kinds.hold, { name: 'now' })
  await worker.heard('it runs', (line) => line.started !== undefined)
  worker.order({ open: 'now' })
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is not null')).length === 1,
    'the settle',
  )
  await worker.kill('SIGKILL')
  expect(await hf.webhooks.deliveries()).toEqual([])
  await startMember({ url, role: 'reap', settings })
  const [got] = await server.got(1)
  verify(secret, got)
  expect(server.told()).toMatchObject([{ type: 'job.finished', subject: job.id }])
})

test('a planner that was killed with -9 is replaced, and every event is planned once', async ({ open, url, query }) => {
  const server = await hook()
  const hf = await open(near)
  await hf.webhooks.create({ url: server.url, types: 'job.submitted' })
  const members = await Promise.all([1, 2].map(() => startMember({ url, role: 'deliver', settings })))
  const pid = await planner(query)
  const dying = members.find((member) => member.pid === pid)
  expect(dying).toBeDefined()
  const before = Array.from({ length: 10 }, (_, input) => hf.submit(kinds.hold, input))
  await server.got(1)
  await dying?.kill('SIGKILL')
  const killedMs = performance.now()
  await Promise.all(before)
  for (let input = 10; input < 20; input++) await hf.submit(kinds.hold, input)
  expect(await until(async () => (await planner(query)) !== pid, 'another plans')).toBe(true)
  expect(performance.now() - killedMs).toBeLessThan(settings.readerLeaseMs + settings.readerBeatMs + 5_000)
  await until(async () => (await query('select from holdfast.delivery')).length === 20, 'all are planned')
  await settled(hf, 'delivered', 20)
  expect(new Set(server.received.map(({ headers }) => headers['webhook-id'])).size).toBe(20)
  expect((await hf.audit()).violations).toEqual([])
})

test('two processes that send lose nothing, and twenty events give twenty ids', async ({ open, url, query }) => {
  const server = await hook()
  const hf = await open(near)
  const { secret } = await hf.webhooks.create({ url: server.url, types: 'job.submitted' })
  await Promise.all([1, 2].map(() => startMember({ url, role: 'deliver', settings })))
  await hf.submitMany(
    kinds.hold,
    Array.from({ length: 20 }, (_, input) => ({ input })),
  )
  await settled(hf, 'delivered', 20)
  expect(await query('select from holdfast.delivery')).toHaveLength(20)
  expect(server.received).toHaveLength(20)
  expect(new Set(server.received.map(({ headers }) => headers['webhook-id'])).size).toBe(20)
  for (const got of server.received) verify(secret, got)
  expect((await hf.audit()).violations).toEqual([])
})

/** Every way in which a receiver can fail for a while. The last one never answers. */
const failures: ((response: ServerResponse) => void)[] = [
  ...[408, 425, 500, 502, 503, 504].map(
    (status) => (response: ServerResponse) => void response.writeHead(status).end(),
  ),
  (response) => response.writeHead(429, { 'retry-after': '0' }).end(),
  (response) => response.destroy(),
  (response) => response.socket?.end('HTTP/1.1 200 OK\r\nconte'),
  (response) => response.socket?.end('this is no HTTP\r\n\r\n'),
  (response) => response.writeHead(500).write('the beginning of an answer that never ends'),
  () => {},
]

test('a receiver that fails in every way sees every event id, always with the same bytes and a valid signature', async ({
  open,
  url,
  query,
}) => {
  const tries = new Map<string, number>()
  const server = await receiver((response, { headers }) => {
    const id = String(headers['webhook-id'])
    const failure = tries.has(id) ? undefined : failures[tries.size % failures.length]
    tries.set(id, (tries.get(id) ?? 0) + 1)
    if (failure) failure(response)
    else response.end()
  })
  const hf = await open(near)
  const { secret } = await hf.webhooks.create({ url: server.url, types: 'job.submitted' })
  const quickly = { ...settings, webhookTimeoutMs: 300, webhookBackoffBaseMs: 20 }
  await startMember({ url, role: 'deliver', settings: quickly })
  await startMember({ url, role: 'deliver', settings: quickly })
  const count = 2 * failures.length
  await hf.submitMany(
    kinds.hold,
    Array.from({ length: count }, () => ({ input: null })),
  )
  const done = `select event_id from holdfast.delivery where state = 'delivered'`
  const delivered = await until(
    async () => {
      const rows = await query<{ event_id: string }>(done)
      return rows.length === count && rows.map(({ event_id }) => event_id)
    },
    'all are delivered',
    25_000,
  )
  const submitted: (string | null)[] = []
  for await (const { jobId } of hf.events.watch({ back: count, follow: false })) submitted.push(jobId)
  // an id tells nothing of the log, so an event is known by its job
  expect(new Set(delivered).size).toBe(count)
  expect([...tries.keys()].toSorted()).toEqual(delivered.toSorted())
  const told = new Map(
    server.received.map(({ headers, body }) => [headers['webhook-id'], JSON.parse(body).data.job.id]),
  )
  expect([...told.values()].toSorted()).toEqual(submitted.toSorted())
  const bytes = new Map<string, string>()
  for (const got of server.received) {
    verify(secret, got)
    const id = String(got.headers['webhook-id'])
    expect(got.body).toBe(bytes.get(id) ?? got.body)
    bytes.set(id, got.body)
  }
  await server[Symbol.asyncDispose]()
})

test('a sender whose clock is minutes ahead signs with the time of the database, and receivers accept it', async ({
  open,
  url,
  query,
}) => {
  // in two seconds, by the right clock; by the clock of the sender, that was minutes ago
  const later = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 2_000)
  const server = await hook([{ status: 503, headers: { 'retry-after': later.toUTCString() } }, 200])
  const hf = await open(near)
  const { secret } = await hf.webhooks.create({ url: server.url, types: 'job.submitted' })
  await startMember({ url, role: 'deliver', isAhead: true, settings: { ...settings, webhookBackoffBaseMs: 1 } })
  await hf.submit(kinds.hold, null)
  const received = await server.got(2)
  for (const got of received) verify(secret, got)
  await settled(hf, 'delivered')
  expect(await query('select claimed_at >= $1 as has_waited from holdfast.delivery', [later])).toEqual([
    { has_waited: true },
  ])
})
