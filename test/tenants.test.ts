import { defineJob } from 'holdfast'
import type { Client } from 'holdfast/client'
import { browseTenantEvents } from '#holdfast/events/log.sql'
import { type Sql, textOf } from '#holdfast/postgres/sql'
import { listQueuesOfTenant } from '#holdfast/reads/overview.sql'
import { pages } from '#holdfast/reads/page.sql'
import { listDeliveriesOfTenant } from '#holdfast/webhooks/deliveries.sql'
import { expect, test } from './http/door.ts'
import { finishedCrowd, queuedCrowd } from './places.ts'

const noop = defineJob('noop', { run: () => {} })

/** Jobs of a neighbor in a queue that nobody else uses, later than all that are there. */
const crowd = (count: number) =>
  queuedCrowd({
    count,
    id: `('ffffffff-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`,
    kind: `'noop'`,
    queue: `'secret-queue'`,
    tenant: `'neighbor'`,
  })

test('a tenant that lists jobs, queues and events learns nothing of a neighbor with a hundred thousand jobs', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop], needsKey: true })
  const clients = { mine: await as('mine', 'read'), default: await as('default', 'read') }
  const jobs = Object.fromEntries(
    await Promise.all(
      Object.keys(clients).map(async (tenant) => [
        tenant,
        (await hf.submit(noop, undefined as never, { tenant, delayMs: 60_000 })).id,
      ]),
    ),
  )
  const seenBy = async (client: Client) => ({
    jobs: (await client.listJobs()).data,
    ofKind: (await client.listJobs({ query: { kind: 'noop', limit: 2 } })).data,
    rare: (await client.listJobs({ query: { kind: 'nobody-has-this' } })).data,
    ended: (await client.listJobs({ query: { state: 'failed' } })).data,
    queues: (await client.listQueues()).data,
    events: (await client.listEvents({ query: { types: 'job.failed' } })).data,
  })
  const before = { mine: await seenBy(clients.mine), default: await seenBy(clients.default) }
  await query(crowd(100_500))
  await query(`insert into holdfast.queue (name, paused_at, paused_by) values ('secret-queue', now(), 'ann')`)
  await query(`insert into holdfast.event_log (type, job_id, kind, tenant)
    select 'job.submitted', gen_random_uuid(), 'noop', 'neighbor' from generate_series(1, 40000)`)
  for (const tenant of ['mine', 'default'] as const) {
    expect([tenant, await seenBy(clients[tenant])]).toEqual([tenant, before[tenant]])
    expect(before[tenant]).toMatchObject({
      jobs: { jobs: [{ id: jobs[tenant] }], next: null },
      rare: { jobs: [], next: null },
      queues: { queues: [{ name: 'default', scheduled: 1, isCapped: false }] },
    })
  }
  // whoever sees all of them is told that they are many
  const all = await as(null, 'read')
  expect((await all.listQueues()).data?.queues).toMatchObject([
    { name: 'default', scheduled: 2 },
    { name: 'secret-queue', queued: 100_000, isCapped: true, pausedBy: 'ann' },
  ])
})

test('a tenant that has nothing looks at nothing, whatever the planner believes of a neighbor that has everything', async ({
  query,
}) => {
  await query(crowd(20_000))
  await query(`insert into holdfast.event_log (type, job_id, kind, tenant)
    select 'job.submitted', gen_random_uuid(), 'noop', 'neighbor' from generate_series(1, 20000)`)
  await query(`insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, ended_at)
    select n, 'x', 'job.failed', 'neighbor', 'lane', 'delivered', '', now() from generate_series(1, 20000) as n`)
  await query(finishedCrowd({ count: 20_000, kind: `'noop'`, tenant: `'neighbor'` }))
  await query('analyze')
  const [tenant, most, limit] = ['nobody', 10_000, 50]
  const any = { kind: null, queue: null, states: null, hasItems: true, types: null, items: true, jobId: null }
  const ids = { below: 'ffffffff-ffff-ffff-ffff-ffffffffffff', from: '00000000-0000-0000-0000-000000000000' }
  const one = { ...any, ...ids, tenant, most, limit }
  const looks: Record<string, Sql> = {
    live: pages.liveOfTenant.build(one),
    finished: pages.finishedOfTenant.build(one),
    events: browseTenantEvents.build({ ...one, after: 0, upTo: 1_000_000 }),
    queues: listQueuesOfTenant.build(one),
    deliveries: listDeliveriesOfTenant.build({ ...one, endpoint: null, job: null, state: null, before: null }),
  }
  const blocks: Record<string, number> = {}
  for (const mode of ['force_custom_plan', 'force_generic_plan'])
    for (const [name, piece] of Object.entries(looks)) {
      await query(`set plan_cache_mode = ${mode}`)
      // the first time, a session reads what its catalog says of it
      await query(textOf(piece), [...piece.values])
      const [row] = await query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
        `explain (analyze, buffers, format json) ${textOf(piece)}`,
        [...piece.values],
      )
      const { 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': read = 0 } = row?.['QUERY PLAN'][0].Plan ?? {}
      blocks[`${name} ${mode}`] = hit + read
    }
  expect(Object.entries(blocks).filter(([, count]) => count > 150)).toEqual([])
})

test('why shows a tenant no place in the log, and nothing of what fails for others', async ({ open, serve, query }) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop], needsKey: true })
  const mine = await as('mine', 'read')
  await hf.webhooks.create({ url: 'https://example.com/hook', tenant: 'mine' })
  await query(`select setval('holdfast.event_seq', 5000000000)`)
  const { id } = await hf.submit(noop, undefined as never, { tenant: 'mine' })
  await hf.cancel(id)
  await query(
    `update holdfast.event_cursor set failing_seq = 4999999999, failures = 2, error = 'secret' where group_name = 'webhooks'`,
  )
  const { data: why } = await mine.whyJob({ path: { id } })
  const facts = why?.facts as { events: object[]; groups: object[] }
  expect(facts.events).toHaveLength(2)
  expect(facts.groups).toMatchObject([{ name: 'webhooks', isBehind: true, isParked: false }])
  expect(why).toMatchObject({
    verdict: { code: 'webhook-not-planned' },
    disagreements: ['The log has events of this job; group "webhooks" has not read all of them.'],
  })
  expect(JSON.stringify(why)).not.toMatch(/"seq"|Seq"|50000000|49999999|secret/)
  // whoever sees all tenants needs them
  expect(JSON.stringify(await hf.why(id))).toMatch(/"seq":50000000.*"wantedSeq":50000000.*secret/)
})

test('the ids of requests tell a tenant nothing about how many others make', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop], needsKey: true })
  const ids: string[] = []
  for (let n = 0; n < 5; n += 1) ids.push((await call('/livez')).headers.get('x-request-id') ?? '')
  // no part of them is shared or counts
  for (const part of [ids.map((id) => id.slice(0, 8)), ids.map((id) => id.slice(-8, -2))])
    expect(new Set(part).size).toBe(5)
})
