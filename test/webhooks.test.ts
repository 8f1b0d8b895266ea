import { randomBytes } from 'node:crypto'
import { defineJob } from 'holdfast'
import { expect, test, until } from './fixtures.ts'
import { broken, echo, hook, near, settled, staged, verify } from './webhooks/hooks.ts'

const jobs = [echo, broken, staged]
const aSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

test('an endpoint is told of the end of a job, signed over the bytes that it gets', async ({ open }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  const { secret, ...endpoint } = await hf.webhooks.create({ url: `${server.url}/in`, headers: { 'X-Team': 'ops' } })
  await hf.work()
  const job = await hf.submit(echo, { say: 'hé' }, { meta: { order: 7 } })
  const [got] = await server.got(1)
  verify(secret, got)
  expect(got).toMatchObject({
    method: 'POST',
    path: '/in',
    headers: { 'x-team': 'ops', 'content-type': 'application/json' },
  })
  expect(got?.headers['user-agent']).toMatch(/^holdfast\/\d/)
  const [event] = (await hf.timeline(job.id)).filter(({ type }) => type === 'job.finished')
  const id = got?.headers['webhook-id']
  expect(id).toMatch(new RegExp(`^evt_${job.id.replaceAll('-', '')}_[0-9a-f]{20}$`))
  expect(server.told()).toEqual([
    {
      specversion: '1.0',
      id,
      source: '/holdfast',
      type: 'job.finished',
      subject: job.id,
      time: event?.at.toISOString(),
      datacontenttype: 'application/json',
      data: {
        job: {
          id: job.id,
          kind: 'echo',
          queue: 'default',
          isItem: false,
          parent: null,
          state: 'succeeded',
          stage: { number: 0, name: expect.any(String) },
          attempt: 1,
          submittedAt: (await hf.get(job.id))?.submittedAt.toISOString(),
          finishedAt: event?.at.toISOString(),
          meta: { order: 7 },
        },
        tenant: 'default',
        result: { say: 'hé' },
        error: null,
        details: null,
      },
    },
  ])
  const [delivery] = await settled(hf, 'delivered')
  expect(delivery).toMatchObject({
    eventId: id,
    endpoint: endpoint.id,
    job: job.id,
    tries: 1,
    status: 200,
    nextAt: null,
  })
  expect((await hf.webhooks.delivery(delivery?.id ?? '')).body).toBe(got?.body)
  expect((await hf.audit()).violations).toEqual([])
})

test('a failed job is told with its error and without its stack', async ({ open }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  await hf.webhooks.create({ url: server.url, types: 'job.failed' })
  await hf.work()
  await hf.submit(broken, null)
  await hf.submit(echo, null)
  const [got] = await server.got(1)
  expect(server.told()[0]?.data).toMatchObject({
    job: { state: 'failed' },
    result: null,
    error: { message: 'It broke.' },
  })
  expect(got?.body).not.toContain('stack')
})

test('each stage can be told with its own result', async ({ open }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  await hf.webhooks.create({ url: server.url, types: ['job.advanced', 'job.finished'] })
  await hf.work()
  await hf.submit(staged, null)
  await server.got(2)
  const results = new Map(server.told().map(({ type, data }) => [type, data]))
  expect(results.get('job.advanced')).toMatchObject({
    job: { state: 'queued', stage: { number: 0, name: 'draft' } },
    result: { text: 'half' },
  })
  expect(results.get('job.finished')).toMatchObject({
    job: { state: 'succeeded', stage: { number: 1, name: 'final' } },
    result: { text: 'whole' },
  })
})

test('the items of a fan-out are told only to those who want them', async ({ open }) => {
  const [few, many] = [await hook(), await hook()]
  const stage = { name: 'all', fanOut: () => [1, 2, 3], each: { run: (_ctx: unknown, item: unknown) => item } }
  const fan = defineJob('fan', { stages: [{ ...stage, join: () => 'joined' }] })
  const hf = await open({ jobs: [fan], ...near })
  await hf.webhooks.create({ url: few.url })
  expect(await hf.webhooks.create({ url: many.url, items: true })).toMatchObject({ items: true })
  await hf.work()
  const job = await hf.submit(fan, null)
  await settled(hf, 'delivered', 5)
  expect(few.told()).toMatchObject([{ subject: job.id, data: { result: 'joined', job: { isItem: false } } }])
  const items = many.told().filter(({ data }) => (data.job as { isItem?: boolean } | null)?.isItem)
  expect(items).toMatchObject(Array(3).fill({ data: { job: { parent: job.id } } }))
  expect((await hf.audit()).violations).toEqual([])
})

test('one job can have a webhook of its own, written with it', async ({ open, query }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const webhook = { url: server.url, secret: aSecret, headers: { authorization: 'Bearer x' } }
  const [one] = await hf.submitMany(echo, [{ input: 1, webhook, traceparent }, { input: 2 }])
  expect(await query('select job_id from holdfast.job_webhook')).toEqual([{ job_id: one?.id }])
  await hf.work()
  const [got] = await server.got(1)
  verify(aSecret, got)
  expect(got?.headers).toMatchObject({ authorization: 'Bearer x', traceparent })
  expect(server.told()).toMatchObject([{ type: 'job.finished', subject: one?.id, traceparent, data: { result: 1 } }])
  expect(await settled(hf, 'delivered')).toMatchObject([{ job: one?.id, endpoint: null }])
})

test('a webhook of a job exists if and only if the transaction of its submit commits', async ({
  open,
  pool,
  query,
}) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  const webhook = { url: server.url, secret: aSecret, types: 'job.submitted' }
  const client = await pool.connect()
  for (const end of ['rollback', 'commit']) {
    await client.query('begin')
    await hf.submit(echo, end, { webhook, tx: client })
    await client.query(end)
  }
  client.release()
  await hf.deliver()
  await server.got(1)
  expect(await query('select from holdfast.job_webhook')).toHaveLength(1)
  await settled(hf, 'delivered')
  expect(server.told()).toMatchObject([{ type: 'job.submitted', data: { job: { state: 'queued' } } }])
})

test('a result that is too large is replaced by a link', async ({ open }) => {
  const server = await hook()
  const large = defineJob('large', { run: () => randomBytes(5_000_000).toString('hex') })
  const hf = await open({ jobs: [large], ...near, maxOutputBytes: 16_777_216, publicUrl: 'https://jobs.example.com/' })
  const { secret } = await hf.webhooks.create({ url: server.url })
  await hf.work()
  const job = await hf.submit(large, null)
  const [got] = await server.got(1)
  verify(secret, got)
  expect(got?.body.length).toBeLessThan(2_000)
  expect(server.told()[0]?.data).toMatchObject({
    result: null,
    resultOmitted: { bytes: 10_000_002, link: `https://jobs.example.com/v1/jobs/${job.id}/result` },
  })
})

test('without a public URL, words say how to read a large result', async ({ open }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near, webhookMaxBytes: 2_000 })
  await hf.webhooks.create({ url: server.url })
  await hf.work()
  const job = await hf.submit(echo, 'x'.repeat(3_000))
  await server.got(1)
  expect(server.told()[0]?.data.resultOmitted?.link).toContain(`holdfast show ${job.id}`)
})

test('an endpoint never gets the events of another tenant', async ({ open, query }) => {
  const [a, b] = [await hook(), await hook()]
  const hf = await open({ jobs, ...near })
  const one = await hf.webhooks.create({ url: a.url, tenant: 'a', types: '*' })
  await hf.webhooks.create({ url: b.url, tenant: 'b', types: '*' })
  await hf.work()
  for (const tenant of ['a', 'b', 'a', 'b', 'c']) await (await hf.submit(echo, tenant, { tenant })).result()
  await Promise.all([a.got(4), b.got(4)])
  await settled(hf, 'delivered', 8)
  expect(await query('select from holdfast.delivery')).toHaveLength(8)
  expect(new Set(a.told().map(({ data }) => data.tenant))).toEqual(new Set(['a']))
  expect(new Set(b.told().map(({ data }) => data.tenant))).toEqual(new Set(['b']))
  expect(await hf.webhooks.deliveries({ tenant: 'c' })).toEqual([])
  await expect(hf.webhooks.get(one.id, { tenant: 'b' })).rejects.toMatchObject({ code: 'endpoint_not_found' })
  const [theirs] = await hf.webhooks.deliveries({ tenant: 'a' })
  await expect(hf.webhooks.replay(theirs?.id ?? '', { tenant: 'b' })).rejects.toMatchObject({
    code: 'delivery_not_found',
  })
})

test('an endpoint gets nothing that happened before it was there', async ({ open }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  await hf.webhooks.create({ url: 'https://elsewhere.example.com', tenant: 'other' })
  await hf.work()
  await (await hf.submit(echo, 'before')).result()
  await hf.webhooks.create({ url: server.url })
  await (await hf.submit(echo, 'after')).result()
  await settled(hf, 'delivered')
  expect(server.told().map(({ data }) => data.result)).toEqual(['after'])
})

test('what happens while nobody plans is planned later', async ({ open }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near, webhooks: false })
  await hf.webhooks.create({ url: server.url })
  await hf.work()
  await (await hf.submit(echo, 'quiet')).result()
  expect(await hf.webhooks.deliveries()).toEqual([])
  const other = await open({ ...near })
  await other.deliver()
  await server.got(1)
})

test('an endpoint gets what is submitted after it was made, although by a transaction that began before', async ({
  open,
  pool,
}) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  await hf.deliver()
  const client = await pool.connect()
  await client.query('begin')
  await hf.webhooks.create({ url: server.url, types: 'job.submitted' })
  const job = await hf.submit(echo, 'late', { tx: client })
  await client.query('commit')
  client.release()
  await server.got(1)
  expect(server.told()[0]?.subject).toBe(job.id)
})

test('an endpoint that commits late misses nothing of what it was promised', async ({ open, pool, query }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  await hf.webhooks.create({ url: 'https://elsewhere.example.com', tenant: 'other' })
  await hf.work()
  const client = await pool.connect()
  await client.query('begin')
  await client.query(
    `insert into holdfast.endpoint (id, tenant, url, types, items, headers, secret)
     values (gen_random_uuid(), 'default', $1, array['job.finished'], false, '{}', $2)`,
    [server.url, `plain:${aSecret}`],
  )
  const job = await hf.submit(echo, 'between')
  await job.result()
  // planned up to here if nothing held the planner back
  await until(
    async () =>
      (await query(`select from holdfast.event_cursor where group_name = 'webhooks' and reader_id is not null`))[0],
    'a planner reads',
  )
  await client.query('commit')
  client.release()
  await server.got(1)
  verify(aSecret, server.received[0])
  expect((await hf.audit()).violations).toEqual([])
})

test('while a secret is replaced, receivers with either of them agree', async ({ open, query }) => {
  const server = await hook()
  const hf = await open({ jobs, ...near })
  const endpoint = await hf.webhooks.create({ url: server.url, secret: aSecret })
  const rotated = await hf.webhooks.rotate(endpoint.id)
  expect(rotated.secret).not.toBe(aSecret)
  expect(rotated.oldSecretUntil?.getTime()).toBeGreaterThan(Date.now() + 80_000_000)
  await hf.work()
  await hf.submit(echo, 1)
  const [first] = await server.got(1)
  for (const secret of [aSecret, rotated.secret]) verify(secret, first)
  await query(`update holdfast.endpoint set old_secret_until = now()`)
  await hf.submit(echo, 2)
  const [, second] = await server.got(2)
  verify(rotated.secret, second)
  expect(() => verify(aSecret, second)).toThrow()
})

test('a secret is shown once, and stored sealed if there is a key', async ({ open, query }) => {
  const server = await hook()
  const secretKey = randomBytes(32).toString('base64')
  const hf = await open({ jobs, ...near, secretKey })
  const endpoint = await hf.webhooks.create({ url: server.url, note: 'mine' })
  const plain = endpoint.secret.slice('whsec_'.length)
  await hf.webhooks.rotate(endpoint.id, { secret: endpoint.secret })
  const shown = [
    await hf.webhooks.list(),
    await hf.webhooks.get(endpoint.id),
    await hf.webhooks.update(endpoint.id, { note: 'still mine' }),
    await hf.webhooks.disable(endpoint.id),
    await hf.webhooks.enable(endpoint.id),
  ]
  await hf.submit(echo, 1, { webhook: { url: server.url, secret: endpoint.secret } })
  expect(JSON.stringify(shown)).not.toContain('secret"')
  expect(JSON.stringify(shown)).not.toContain(plain)
  const stored = JSON.stringify([await query('table holdfast.endpoint'), await query('table holdfast.job_webhook')])
  expect(stored).toContain('v1:')
  expect(stored).not.toContain(plain)
  await hf.work()
  const got = await server.got(2)
  for (const one of got) verify(endpoint.secret, one)
})

test('a process without the key tries again later, and one with it delivers', async ({ open, query }) => {
  const server = await hook()
  const keyed = await open({ ...near, secretKey: 'ab'.repeat(32), webhooks: false })
  await keyed.webhooks.create({ url: server.url, types: 'job.submitted' })
  const keyless = await open({ ...near })
  const { stop } = await keyless.deliver()
  await keyed.submit(echo, 1)
  const waiting = await until(async () => {
    const [first] = await keyed.webhooks.deliveries({ state: 'pending' })
    return first?.error ? first : null
  }, 'a failed try')
  expect(waiting.error).toContain('secret key')
  await stop()
  await query('update holdfast.delivery set next_at = now()')
  await keyed.deliver()
  await server.got(1)
})

test('a sample can be sent at once', async ({ open }) => {
  const server = await hook([200, { status: 500, body: 'Oh no.' }])
  const hf = await open({ ...near })
  const endpoint = await hf.webhooks.create({ url: server.url })
  expect(await hf.webhooks.test(endpoint.id)).toMatchObject({ kind: 'delivered', status: 200 })
  expect(await hf.webhooks.test(endpoint.id)).toMatchObject({ kind: 'retry', status: 500, excerpt: 'Oh no.' })
  verify(endpoint.secret, server.received[0])
  expect(server.told()[0]).toMatchObject({ type: 'webhook.test', data: { tenant: 'default', job: null } })
  expect(await hf.webhooks.deliveries()).toEqual([])
})

test('an endpoint can be changed, and gets what it wants from then on', async ({ open }) => {
  const [before, after] = [await hook(), await hook()]
  const hf = await open({ jobs, ...near })
  const { id } = await hf.webhooks.create({ url: before.url, types: 'job.failed', note: 'one' })
  const changed = await hf.webhooks.update(id, { url: after.url, types: 'job.finished', headers: { 'x-a': 'b' } })
  expect(changed).toMatchObject({ id, types: ['job.finished'], headers: { 'x-a': 'b' }, note: 'one' })
  await hf.work()
  await hf.submit(echo, 1)
  await hf.submit(broken, 1)
  await settled(hf, 'delivered')
  expect(after.told()).toMatchObject([{ type: 'job.finished' }])
  expect(before.received).toEqual([])
  await hf.webhooks.remove(id)
  expect(await hf.webhooks.list()).toEqual([])
  expect(await hf.webhooks.deliveries({ endpoint: id })).toHaveLength(1)
})

const unknown = '01890a5d-ac96-774b-bcce-b302099a8057'
const good = 'https://example.com'
test.for<[string, string, (hf: import('holdfast').Holdfast) => Promise<unknown>]>([
  ['no URL', 'webhook_url_invalid', (hf) => hf.webhooks.create({ url: 'nonsense' })],
  ['another scheme', 'webhook_url_invalid', (hf) => hf.webhooks.create({ url: 'ftp://example.com' })],
  ['plain http', 'webhook_url_refused', (hf) => hf.webhooks.create({ url: 'http://example.com' })],
  ['a private address', 'webhook_url_refused', (hf) => hf.webhooks.create({ url: 'https://10.0.0.1' })],
  ['a decimal address', 'webhook_url_refused', (hf) => hf.webhooks.create({ url: 'https://2852039166/' })],
  ['an unknown type', 'event_type_unknown', (hf) => hf.webhooks.create({ url: good, types: 'job.exploded' })],
  ['no type', 'event_type_unknown', (hf) => hf.webhooks.create({ url: good, types: [] })],
  ['a short secret', 'webhook_secret_invalid', (hf) => hf.webhooks.create({ url: good, secret: 'whsec_abc=' })],
  [
    'a header of ours',
    'webhook_header_invalid',
    (hf) => hf.webhooks.create({ url: good, headers: { 'Webhook-Id': 'x' } }),
  ],
  ['a tenant that is no name', 'option_invalid', (hf) => hf.webhooks.create({ url: good, tenant: 'a b' })],
  ['a note with NUL', 'option_invalid', (hf) => hf.webhooks.create({ url: good, note: '\0' })],
  ['an unknown endpoint', 'endpoint_not_found', (hf) => hf.webhooks.get(unknown)],
  ['an id that is none', 'endpoint_not_found', (hf) => hf.webhooks.disable('x')],
  ['an unknown endpoint to remove', 'endpoint_not_found', (hf) => hf.webhooks.remove(unknown)],
  ['an unknown endpoint to test', 'endpoint_not_found', (hf) => hf.webhooks.test(unknown)],
  ['a negative grace', 'option_invalid', (hf) => hf.webhooks.rotate(unknown, { graceMs: -1 })],
  ['an unknown delivery', 'delivery_not_found', (hf) => hf.webhooks.delivery(unknown)],
  ['an unknown delivery to replay', 'delivery_not_found', (hf) => hf.webhooks.replay(unknown)],
  ['a state that is none', 'option_invalid', (hf) => hf.webhooks.deliveries({ state: 'lost' as never })],
  ['a limit that is none', 'option_invalid', (hf) => hf.webhooks.deliveries({ limit: 0 })],
  ['pending ones to replay', 'option_invalid', (hf) => hf.webhooks.replayAll({ state: 'pending' as never })],
  ['a date that is none', 'option_invalid', (hf) => hf.webhooks.replayAll({ since: new Date('x') })],
  [
    'a job webhook without secret',
    'webhook_secret_invalid',
    (hf) => hf.submit(echo, 1, { webhook: { url: good } as never }),
  ],
  ['a job webhook that is none', 'option_invalid', (hf) => hf.submit(echo, 1, { webhook: good as never })],
  ['a garbled trace', 'option_invalid', (hf) => hf.submit(echo, 1, { traceparent: '00-0-0-00' })],
  ['the group of webhooks', 'group_invalid', (hf) => hf.events.subscribe('webhooks', {}, () => {})],
])('%s is refused with %s', async ([, code, call], { hf, query }) => {
  await expect(call(hf)).rejects.toMatchObject({ code })
  expect(
    await query('select from holdfast.endpoint union all select from holdfast.job_status where finished_at is null'),
  ).toEqual([])
})

test.for([{ webhookAllow: ['10.0.0.1/99'] }, { secretKey: 'short' }])(
  'a process with %o does not start',
  async (setting, { open }) => {
    await expect(open(setting)).rejects.toMatchObject({ code: 'config_invalid' })
  },
)
