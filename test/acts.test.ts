import { defineJob, eventTypes, type Holdfast } from 'holdfast'
import { createClient } from 'holdfast/client'
import { ask } from './cli/command.ts'
import { expect, test, until } from './http/door.ts'
import { hook, near } from './webhooks/hooks.ts'

const noop = defineJob('noop', { run: () => {} })
const acts = ['endpoint.*', 'delivery.*', 'group.*', 'parked.*', 'repair.*']
const aSecret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

/** A client with a key, and what the log says of whoever uses it. */
async function withKey(hf: Holdfast, url: string, tenant: string | null) {
  const { key, id } = await hf.keys.create({ name: 'operates', scopes: ['admin'], tenant })
  return { client: createClient({ url, key }), by: `key ${id}` }
}

/** What was done, as the log tells it. */
async function told(hf: Holdfast, types: string | readonly string[] = acts) {
  const { events } = await hf.events.page({ types })
  return events.map(({ type, tenant, data }) => ({ type, tenant, data }))
}

test('changing or testing a webhook with a key is logged with the key, for its tenant only', async ({
  open,
  serve,
}) => {
  const server = await hook()
  const hf = await open({ jobs: [noop], ...near })
  const { url } = await serve(hf, { jobs: [noop], needsKey: true })
  const mine = await withKey(hf, url, 'mine')
  const theirs = await withKey(hf, url, 'theirs')
  const { client, by } = mine
  const body = { url: `${server.url}/path-token?query=token`, headers: { authorization: 'header-token' } }
  const { data: made } = await client.createWebhook({ body })
  const id = String(made?.id)
  const path = { id }
  await client.updateWebhook({ path, body: { note: 'note-token', types: ['job.failed'] } })
  const { data: rotated } = await client.rotateWebhookSecret({ path, body: { secret: aSecret } })
  await client.testWebhook({ path })
  await client.disableWebhook({ path, body: { why: 'moving' } })
  await client.enableWebhook({ path })
  await expect(theirs.client.enableWebhook({ path })).rejects.toMatchObject({ code: 'endpoint_not_found' })
  await client.removeWebhook({ path })
  await expect(client.removeWebhook({ path })).rejects.toMatchObject({ code: 'endpoint_not_found' })
  const about = { endpoint: id, origin: server.url, by }
  const all = await told(hf)
  expect(all).toEqual([
    { type: 'endpoint.created', tenant: 'mine', data: about },
    { type: 'endpoint.updated', tenant: 'mine', data: { ...about, changed: ['types', 'note'] } },
    { type: 'endpoint.rotated', tenant: 'mine', data: about },
    { type: 'endpoint.tested', tenant: 'mine', data: about },
    { type: 'endpoint.disabled', tenant: 'mine', data: { ...about, why: 'moving' } },
    { type: 'endpoint.enabled', tenant: 'mine', data: about },
    { type: 'endpoint.removed', tenant: 'mine', data: about },
  ])
  for (const secret of ['token', String(made?.secret), String(rotated?.secret)])
    expect(JSON.stringify(all)).not.toContain(secret)
  const seenBy = async ({ client: one }: typeof mine) =>
    (await one.listEvents({ query: { types: 'endpoint.*' } })).data?.events.map(({ type }) => type)
  expect(await seenBy(mine)).toEqual(all.map(({ type }) => type))
  expect(await seenBy(theirs)).toEqual([])
})

test('an endpoint that is refused for the limit of its tenant is no event', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop], webhookEndpoints: 1 })
  const { url } = await serve(hf, { jobs: [noop], needsKey: true })
  const { client } = await withKey(hf, url, 'mine')
  const body = { url: 'https://example.com/hook' }
  await client.createWebhook({ body })
  await expect(client.createWebhook({ body })).rejects.toMatchObject({ code: 'too_many_endpoints' })
  expect(await told(hf)).toHaveLength(1)
})

test('replaying deliveries with a key is logged for each tenant that they belong to', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ jobs: [noop], ...near })
  const { url } = await serve(hf, { jobs: [noop], needsKey: true })
  const mine = await withKey(hf, url, 'mine')
  const all = await withKey(hf, url, null)
  const rows = await query<{ id: string; tenant: string }>(
    `insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, ended_at)
    select n, 'x' || n, 'job.failed', case when n < 3 then 'mine' else 'theirs' end, 'lane', 'dead', '{}', now() from generate_series(1, 3) as n
    returning id, tenant`,
  )
  const delivery = String(rows.find(({ tenant }) => tenant === 'mine')?.id)
  await mine.client.replayDelivery({ path: { id: delivery } })
  await expect(mine.client.replayDelivery({ path: { id: delivery } })).rejects.toMatchObject({
    code: 'delivery_pending',
  })
  await all.client.replayDeliveries({ body: {} })
  await all.client.replayDeliveries({ body: {} })
  const [first, ...others] = await told(hf)
  expect(first).toEqual({ type: 'delivery.replayed', tenant: 'mine', data: { deliveries: 1, delivery, by: mine.by } })
  expect(others.toSorted((a, b) => a.tenant.localeCompare(b.tenant))).toEqual([
    { type: 'delivery.replayed', tenant: 'mine', data: { deliveries: 1, by: all.by } },
    { type: 'delivery.replayed', tenant: 'theirs', data: { deliveries: 1, by: all.by } },
  ])
})

test('forgetting a group, moving it back or replaying its parked events with a key is logged, invisible to tenants', async ({
  open,
  serve,
}) => {
  const hf = await open({ jobs: [noop] })
  const { url } = await serve(hf, { jobs: [noop], needsKey: true })
  const { client, by } = await withKey(hf, url, null)
  const mine = await withKey(hf, url, 'mine')
  const reading = await hf.events.subscribe('mail', { types: 'job.*', failures: 1 }, () => {
    throw new Error('no')
  })
  await hf.submit(noop, undefined as never)
  const [parked] = await until(async () => {
    const found = await hf.events.parked('mail')
    return found.length === 1 && found
  }, 'it is parked')
  await reading.stop()
  const path = { name: 'mail' }
  await client.replayGroup({ path, body: { parked: 'all' } })
  await client.replayGroup({ path, body: { parked: parked?.event.seq ?? 0 } })
  await client.replayGroup({ path, body: { from: 'beginning' } })
  // nobody is named, and a group that reads everything would be told of what it did itself
  await hf.events.replay('mail', { from: 'now' })
  await client.forgetGroup({ path })
  await expect(client.forgetGroup({ path })).rejects.toMatchObject({ code: 'group_not_found' })
  expect(await told(hf)).toEqual([
    { type: 'parked.replayed', tenant: '*', data: { group: 'mail', by } },
    { type: 'parked.replayed', tenant: '*', data: { group: 'mail', seq: parked?.event.seq, by } },
    { type: 'group.rewound', tenant: '*', data: { group: 'mail', seq: 0, by } },
    { type: 'group.forgotten', tenant: '*', data: { group: 'mail', by } },
  ])
  expect((await mine.client.listEvents({ query: { types: 'group.*,parked.*' } })).data?.events).toEqual([])
})

test('repairing a job with a key is logged; a dry run is not', async ({ open, serve, given }) => {
  const hf = await open({ jobs: [noop] })
  const { url } = await serve(hf, { jobs: [noop], needsKey: true })
  const { client, by } = await withKey(hf, url, null)
  const { id } = await given.finished('failed')
  await client.repairJob({ path: { id }, body: { dryRun: true } })
  expect(await told(hf)).toEqual([])
  await client.repairJob({ path: { id }, body: {} })
  expect(await told(hf)).toEqual([
    { type: 'repair.requested', tenant: 'default', data: { job: id, repair: 'redo', by } },
  ])
})

test('a command records who gave it, and a program whom it names', async ({ open, url }) => {
  const hf = await open({ jobs: [noop] })
  const env = { HOLDFAST_URL: url }
  const { endpoint } = await ask<{ endpoint: { id: string } }>(['webhooks', 'add', 'https://example.com/in'], { env })
  await hf.webhooks.disable(endpoint.id, { by: 'deploy' })
  await hf.webhooks.remove(endpoint.id)
  const about = { endpoint: endpoint.id, origin: 'https://example.com' }
  expect(await told(hf)).toEqual([
    { type: 'endpoint.created', tenant: 'default', data: { ...about, by: expect.stringMatching(/\S/) } },
    { type: 'endpoint.disabled', tenant: 'default', data: { ...about, why: expect.any(String), by: 'deploy' } },
    { type: 'endpoint.removed', tenant: 'default', data: about },
  ])
})

test('an endpoint hears of such acts only if it asks for them, and never of its own creation', async ({ open }) => {
  const hf = await open({ jobs: [noop], ...near })
  const asked = (types: string | undefined) =>
    hf.webhooks.create({ url: 'https://example.com', ...(types === undefined ? {} : { types }) })
  for (const types of [undefined, 'job.*', 'webhook.*', 'queue.*', 'key.*'])
    expect((await asked(types)).types.filter((type) => acts.some((act) => type.startsWith(act.slice(0, -1))))).toEqual(
      [],
    )
  const server = await hook()
  const every = await hf.webhooks.create({ url: server.url, types: '*' })
  expect(every.types).toEqual(eventTypes)
  const other = await asked('job.failed')
  await hf.deliver()
  await server.got(1)
  expect(server.told()).toMatchObject([
    { type: 'endpoint.created', data: { job: null, details: { endpoint: other.id, origin: 'https://example.com' } } },
  ])
  expect((await hf.audit()).violations).toEqual([])
})
