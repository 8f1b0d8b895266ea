import { defineJob } from 'holdfast'
import { createClient } from 'holdfast/client'
import { ask, call as command } from './cli/command.ts'
import { expect, test } from './http/door.ts'

const noop = defineJob('noop', { run: () => {} })
const hourMs = 3_600_000

/** Many keys of somebody, made later than all that are there. */
const crowd = `insert into holdfast.api_key (id, name, hash, tenant, scopes)
  select ('ffffffff-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'crowd ' || n, '\\x00', $1, '{read}' from generate_series(1, $2::int) as n`

test('a list of keys has pages, and a key behind a thousand others is listed and revoked by the end of its id', async ({
  open,
  serve,
  query,
  url,
}) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop], needsKey: true })
  const mine = await as('mine', 'admin')
  const admin = await as(null, 'admin')
  const first = await hf.keys.create({ name: 'first', scopes: ['read'], tenant: 'mine' })
  await query(crowd, ['theirs', 1_100])
  const seen: string[] = []
  let cursor: string | null | undefined
  do {
    const { data } = await admin.listKeys({ query: { limit: 500, ...(cursor ? { cursor } : {}) } })
    seen.push(...(data?.keys ?? []).map(({ id }) => id))
    cursor = data?.next
  } while (cursor)
  expect(seen).toHaveLength(1_103)
  expect(new Set(seen).size).toBe(1_103)
  expect(seen).toContain(first.id)
  // a tenant's page is full of its own keys, whoever else has made some
  const { data: own } = await mine.listKeys()
  expect(own).toMatchObject({ keys: [{ id: first.id }, { tenant: 'mine' }], next: null })
  const env = { HOLDFAST_URL: url }
  expect(await ask<unknown[]>(['keys', 'list'], { env })).toHaveLength(1_103)
  const revoked = await command(['keys', 'revoke', first.id.slice(-8)], { env })
  expect(revoked.stderr).toBe('')
  expect(revoked.stdout).toContain(first.id)
  expect(await hf.keys.list({ tenant: 'mine', good: true })).toHaveLength(1)
})

test('a key says who made it, makes none that outlives it or can do more, and every act is an event', async ({
  open,
  serve,
}) => {
  const hf = await open({ jobs: [noop] })
  const { url } = await serve(hf, { jobs: [noop], needsKey: true })
  const maker = await hf.keys.create(
    { name: 'for a day', scopes: ['admin'], tenant: 'mine', expiresMs: 24 * hourMs },
    { by: 'ann@desk' },
  )
  expect(maker.createdBy).toBe('ann@desk')
  const mine = createClient({ url, key: maker.key })
  // an expiry that was left out is that of the maker
  const { data: inherited } = await mine.createKey({ body: { name: 'inherits', scopes: ['read'] } })
  expect(inherited).toMatchObject({ createdBy: `key ${maker.id}`, expiresAt: maker.expiresAt?.toISOString() })
  const { data: shorter } = await mine.createKey({ body: { name: 'shorter', scopes: ['admin'], expiresMs: hourMs } })
  await expect(
    mine.createKey({ body: { name: 'longer', scopes: ['read'], expiresMs: 25 * hourMs } }),
  ).rejects.toMatchObject({ status: 403, code: 'key_exceeds_maker' })
  // nor by a detour
  const child = createClient({ url, key: String(shorter?.key) })
  await expect(
    child.createKey({ body: { name: 'longer', scopes: ['read'], expiresMs: 2 * hourMs } }),
  ).rejects.toMatchObject({ code: 'key_exceeds_maker' })
  // the rule holds for whoever makes keys with a key, whatever scope lets them in
  const reader = await hf.keys.create({ name: 'reads', scopes: ['read'], tenant: 'mine' })
  for (const more of [
    { scopes: ['submit'] as const, tenant: 'mine' },
    { scopes: ['read'] as const, tenant: null },
    { scopes: ['read'] as const, tenant: 'theirs' },
  ])
    await expect(hf.keys.create({ name: 'more', ...more }, { maker: reader.id })).rejects.toMatchObject({
      code: 'key_exceeds_maker',
    })
  await mine.revokeKey({ path: { id: String(inherited?.id) } })
  await mine.revokeKey({ path: { id: String(inherited?.id) } })
  await hf.keys.revoke(maker.id, { by: 'ann@desk' })
  // the server may still know the maker, the database knows better
  await expect(mine.createKey({ body: { name: 'late', scopes: ['read'] } })).rejects.toMatchObject({
    code: 'key_refused',
  })
  const all = await hf.keys.create({ name: 'all', scopes: ['admin'], tenant: null })
  const told = (await hf.events.page({ types: 'key.*' })).events.map(({ type, tenant, data }) => ({
    type,
    tenant,
    ...(data as object),
  }))
  const byMaker = `key ${maker.id}`
  expect(told).toMatchObject([
    { type: 'key.created', tenant: 'mine', key: maker.id, name: 'for a day', scopes: ['admin'], by: 'ann@desk' },
    { type: 'key.created', tenant: 'mine', key: inherited?.id, by: byMaker },
    { type: 'key.created', tenant: 'mine', key: shorter?.id, by: byMaker },
    { type: 'key.created', tenant: 'mine', key: reader.id },
    { type: 'key.revoked', tenant: 'mine', key: inherited?.id, by: byMaker },
    { type: 'key.revoked', tenant: 'mine', key: maker.id, by: 'ann@desk' },
    { type: 'key.created', tenant: '*', key: all.id },
  ])
  expect(JSON.stringify(told)).not.toContain(maker.key.slice(-43))
  // a tenant is told of its own keys, and of no others
  const watcher = await hf.keys.create({ name: 'watches', scopes: ['read'], tenant: 'theirs' })
  const { data } = await createClient({ url, key: watcher.key }).listEvents()
  expect(data?.events.map((event) => (event.data as { key: string }).key)).toEqual([watcher.id])
  const [known] = await hf.keys.list({ ending: String(inherited?.id).slice(-8) })
  expect(known).toMatchObject({ revokedBy: byMaker })
})

test('whoever redoes or repairs a job, or pauses and resumes a queue with a key, is in the log', async ({
  open,
  serve,
  given,
}) => {
  const hf = await open({ jobs: [noop] })
  const { url } = await serve(hf, { jobs: [noop], needsKey: true })
  const operator = await hf.keys.create({ name: 'operates', scopes: ['admin'], tenant: null })
  const client = createClient({ url, key: operator.key })
  const by = `key ${operator.id}`
  const [redone, repaired] = [await given.finished('failed'), await given.finished('failed')]
  await client.redoJob({ path: { id: redone.id }, body: {} })
  await client.repairJob({ path: { id: repaired.id }, body: {} })
  for (const { id } of [redone, repaired])
    expect((await hf.timeline(id)).at(-1)).toMatchObject({ type: 'job.redone', data: { by } })
  await client.pauseQueue({ path: { name: redone.queue }, body: { by: 'ann', reason: 'moving' } })
  await client.resumeQueue({ path: { name: redone.queue } })
  await client.pauseQueue({ path: { name: redone.queue }, body: {} })
  await client.repairJob({ path: { id: redone.id }, body: {} })
  const { events } = await hf.events.page({ types: 'queue.*' })
  const { queue } = redone
  expect(events.map(({ type, tenant, data }) => ({ type, tenant, data }))).toEqual([
    { type: 'queue.paused', tenant: '*', data: { queue, by: `ann (${by})`, reason: 'moving' } },
    { type: 'queue.resumed', tenant: '*', data: { queue, by } },
    { type: 'queue.paused', tenant: '*', data: { queue, by } },
    { type: 'queue.resumed', tenant: '*', data: { queue, by } },
  ])
})
