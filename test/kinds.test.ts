import { defineJob } from 'holdfast'
import type { Client } from 'holdfast/client'
import { expect, problem, type Served, test, until } from './http/door.ts'

const many = (count: number, prefix: string) =>
  Array.from({ length: count }, (_, index) => ({ name: `${prefix}-${index}` }))

type Api = (key: string, method: string, path: string, body?: unknown) => Promise<{ status: number; body: never }>

/** Calls the API with a key, as any client does. */
function apiOf({ url }: Served): Api {
  return async (key, method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: response.status, body: (response.status === 204 ? null : await response.json()) as never }
  }
}

/** How long the slowest of a few submits takes. */
async function slowestSubmitMs(client: Client, kind: string): Promise<number> {
  let slowest = 0
  for (let turn = 0; turn < 10; turn += 1) {
    const startedMs = performance.now()
    await client.submitJob({ body: { kind } })
    slowest = Math.max(slowest, performance.now() - startedMs)
  }
  return slowest
}

test('a tenant that registers kinds without end is stopped at its limit, and its neighbor submits as before', async ({
  hf,
  serve,
  query,
}) => {
  const served = await serve(hf)
  const api = apiOf(served)
  const [attacker, neighbor] = [await served.as('mallory', 'work'), await served.as('acme', 'submit')]
  await hf.remote.open({ kinds: [{ name: 'invoice' }] })
  const opened = await Promise.all(
    Array.from({ length: 50 }, (_, turn) =>
      api(attacker.key, 'POST', '/v1/sessions', { kinds: many(200, `flood-${turn}`) }),
    ),
  )
  expect(opened.filter(({ status }) => status === 201)).toHaveLength(2)
  expect(opened.find(({ status }) => status !== 201)).toMatchObject({
    status: 429,
    body: { code: 'kinds_exhausted', detail: expect.stringContaining('kindsPerTenant') },
  })
  expect(await query(`select count(*)::int from holdfast.kind where tenant = 'mallory'`)).toEqual([{ count: 400 }])
  // what it has already, it may open again
  expect((await api(attacker.key, 'POST', '/v1/sessions', { kinds: many(200, 'flood-0') })).status).toBe(201)
  expect(await slowestSubmitMs(neighbor, 'invoice')).toBeLessThan(1_000)
})

test('a submit looks up one kind however many there are, and an unknown one is answered with a few names', async ({
  hf,
  serve,
  query,
}) => {
  const served = await serve(hf)
  const client = await served.as('acme', 'submit')
  await query(`insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages)
    select whose, 'kind-' || n, 'default', 2, 3, '[{"name":"run","optional":false}]'
    from generate_series(1, 20000) as n cross join unnest(array['', 'acme', 'mallory']) as whose`)
  expect(await slowestSubmitMs(client, 'kind-777')).toBeLessThan(1_000)
  const startedMs = performance.now()
  const asked = await served.call('/v1/jobs', {
    method: 'POST',
    key: client.key,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'kind-777x' }),
  })
  const text = await asked.text()
  expect(performance.now() - startedMs).toBeLessThan(1_000)
  expect(asked.status).toBe(404)
  expect(JSON.parse(text)).toMatchObject({
    code: 'unknown_kind',
    detail: expect.stringContaining('did you mean kind-777'),
  })
  expect(text.length).toBeLessThan(1_000)
})

test('a session may serve so many kinds with so many stages, and a tenant may open so many sessions', async ({
  open,
  serve,
}) => {
  const served = await serve(await open({ kindsPerSession: 3, sessionsPerTenant: 2 }))
  const api = apiOf(served)
  const { key } = await served.as('acme', 'work')
  const tooMany = await api(key, 'POST', '/v1/sessions', { kinds: many(4, 'kind') })
  expect(tooMany).toMatchObject({ status: 422, body: { detail: expect.stringContaining('kindsPerSession') } })
  const wide = await serve(await open({ kindsPerSession: 1_000 }))
  const stages = Array.from({ length: 100 }, (_, index) => ({ name: `stage-${index}` }))
  const kinds = many(21, 'wide').map((kind) => ({ ...kind, stages }))
  expect(await apiOf(wide)(key, 'POST', '/v1/sessions', { kinds })).toMatchObject({
    status: 422,
    body: { detail: expect.stringContaining('2000 stages') },
  })
  const opening = () => api(key, 'POST', '/v1/sessions', { kinds: many(1, 'kind') })
  const all = await Promise.all(Array.from({ length: 5 }, opening))
  expect(all.map(({ status }) => status).sort()).toEqual([201, 201, 429, 429, 429])
  const { body } = all.find(({ status }) => status === 201) as { body: { id: string } }
  expect((await api(key, 'DELETE', `/v1/sessions/${body.id}`)).status).toBe(204)
  expect((await opening()).status).toBe(201)
})

test('the kind of one tenant decides nothing about the jobs of another, and is not shown to it', async ({
  hf,
  serve,
}) => {
  const served = await serve(hf)
  const api = apiOf(served)
  const [squatter, other] = [
    await served.as('mallory', 'work', 'submit', 'read'),
    await served.as('acme', 'submit', 'read', 'work'),
  ]
  const squatted = { kinds: [{ name: 'invoice', queue: 'squat', priority: 4 }] }
  expect((await api(squatter.key, 'POST', '/v1/sessions', squatted)).status).toBe(201)
  const unknown = await served.call('/v1/jobs', {
    method: 'POST',
    key: other.key,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ kind: 'invoice' }),
  })
  const told = await problem(unknown)
  expect([told.code, JSON.stringify(told).includes('squat')]).toEqual(['unknown_kind', false])
  await api(other.key, 'POST', '/v1/sessions', { kinds: [{ name: 'invoice', queue: 'billing' }] })
  const { data } = await other.submitJob({ body: { kind: 'invoice' } })
  expect(await hf.get((data as { id: string }).id)).toMatchObject({ queue: 'billing', priority: 2 })
  const own = await squatter.submitJob({ body: { kind: 'invoice' } })
  expect(await hf.get((own.data as { id: string }).id)).toMatchObject({ queue: 'squat', priority: 4 })
  const listed = (await api(other.key, 'GET', '/v1/kinds')).body as { kinds: object[] }
  expect(listed.kinds).toMatchObject([{ name: 'invoice', tenant: 'acme', queue: 'billing' }])
  const queues = (await api(other.key, 'GET', '/v1/queues')).body as { queues: { name: string }[] }
  expect(queues.queues.map(({ name }) => name)).toEqual(['billing'])
  expect((await hf.kinds()).map(({ tenant }) => tenant)).toEqual(['acme', 'mallory'])
})

test('a kind for all tenants comes before that of one, and why says whose rule put a job into its queue', async ({
  hf,
  serve,
}) => {
  const served = await serve(hf)
  const api = apiOf(served)
  const acme = await served.as('acme', 'work', 'submit', 'read')
  await api(acme.key, 'POST', '/v1/sessions', { kinds: [{ name: 'invoice', queue: 'own' }] })
  const first = (await acme.submitJob({ body: { kind: 'invoice' } })).data as { id: string }
  expect((await hf.why(first.id)).facts.kind).toMatchObject({ tenant: 'acme', queue: 'own' })
  const { id } = await hf.remote.open({ kinds: [{ name: 'invoice', queue: 'shared' }] })
  await hf.remote.close(id)
  // a server remembers for a second what it has looked up
  const job = await until(async () => {
    const { data } = await acme.submitJob({ body: { kind: 'invoice' } })
    const job = await hf.get((data as { id: string }).id)
    return job?.queue === 'shared' ? job : undefined
  }, 'a job that goes by the rule for all tenants')
  const { body } = await api(acme.key, 'GET', `/v1/jobs/${job.id}/why`)
  expect(body).toMatchObject({
    verdict: {
      code: 'no-worker',
      sentence: expect.stringContaining(
        'the rule for all tenants routed it there and overrides the rule of tenant `acme`, which names queue `own`',
      ),
    },
    facts: { kind: { tenant: null, queue: 'shared', ownQueue: 'own' } },
  })
})

test('kinds that nobody has served for long are forgotten, and those that are served stay', async ({ open, query }) => {
  const hf = await open()
  await hf.remote.open({ kinds: [{ name: 'served' }], tenant: 'acme', leaseMs: 60_000 })
  await hf.remote.open({ kinds: [{ name: 'shared' }], leaseMs: 60_000 })
  await query(`insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages)
    select whose, 'left-' || n, 'default', 2, 3, '[]' from generate_series(1, 600) as n cross join unnest(array['', 'acme']) as whose`)
  await query(`insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages)
    values ('acme', 'recent', 'default', 2, 3, '[]')`)
  await query(`update holdfast.kind set seen_at = now() - interval '31 days' where name <> 'recent'`)
  await hf.reap()
  const left = await until(async () => {
    const kinds = await hf.kinds()
    return kinds.length === 3 ? kinds : undefined
  }, 'only the kinds that are served or recent')
  expect(left.map(({ name }) => name)).toEqual(['shared', 'recent', 'served'])
  expect(left.every(({ seenAt }) => Date.now() - seenAt.getTime() < 3_600_000)).toBe(true)
})

test('pages of kinds show each once', async ({ hf, serve }) => {
  const served = await serve(hf)
  const api = apiOf(served)
  const { key } = await served.as('acme', 'work', 'read')
  await hf.remote.open({ kinds: many(3, 'shared') })
  await hf.remote.open({ kinds: many(3, 'own'), tenant: 'acme' })
  await hf.remote.open({ kinds: many(3, 'foreign'), tenant: 'mallory' })
  const names: string[] = []
  let path: string | null = '/v1/kinds?limit=2'
  while (path !== null) {
    const { kinds, next }: { kinds: { name: string }[]; next: string | null } = (await api(key, 'GET', path)).body
    names.push(...kinds.map(({ name }) => name))
    path = next === null ? null : `/v1/kinds?limit=2&cursor=${next}`
  }
  expect(names).toEqual(['shared-0', 'shared-1', 'shared-2', 'own-0', 'own-1', 'own-2'])
})

test('a kind is stranded for a tenant whose jobs only the worker of another could serve', async ({ hf }) => {
  const invoice = defineJob('invoice', { run: () => {} })
  await hf.remote.open({ kinds: [{ name: 'invoice' }], tenant: 'mallory' })
  await hf.submit(invoice, null as never, { tenant: 'mallory' })
  expect((await hf.recovery()).stranded).toEqual([])
  await hf.submit(invoice, null as never, { tenant: 'acme', priority: 1 })
  expect((await hf.recovery()).stranded).toMatchObject([{ queue: 'default', kind: 'invoice' }])
})

test('a worker that is opened over and over writes its kinds once', async ({ hf, query }) => {
  const versions = () => query('select name, xmin::text from holdfast.kind order by name')
  const worker = { kinds: many(3, 'same'), tenant: 'acme' }
  await hf.remote.open(worker)
  const before = await versions()
  await hf.remote.open(worker)
  expect(await versions()).toEqual(before)
  await hf.remote.open({ ...worker, kinds: [{ name: 'same-0', queue: 'other' }] })
  expect(await hf.kind('same-0', { tenant: 'acme' })).toMatchObject({ queue: 'other' })
})

test('a remote worker says how long the jobs of its kinds are kept, as a worker of ours does', async ({ hf }) => {
  await hf.remote.open({ kinds: [{ name: 'far', keep: { succeeded: '1d', failed: 60_000 } }] })
  expect(await hf.kind('far')).toMatchObject({ keep: { succeeded: 86_400_000, failed: 60_000 } })
  await hf.remote.open({ kinds: [{ name: 'far' }] })
  expect(await hf.kind('far')).toMatchObject({ keep: null })
  await expect(hf.remote.open({ kinds: [{ name: 'far', keep: 'soon' }] })).rejects.toMatchObject({
    code: 'option_invalid',
  })
})
