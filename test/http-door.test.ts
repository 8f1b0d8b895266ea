import { connect as connectSocket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, defineJob } from 'holdfast'
import { createClient } from 'holdfast/client'
import { readConfig } from '#holdfast/config/config'
import { makeServing } from '#holdfast/http/serve'
import { newDatabase, quick } from './fixtures.ts'
import { expect, problem, silent, test, until } from './http/door.ts'
import { get, open as openSocket, statusOf } from './http/sockets.ts'
import { makeWire } from './wire.ts'

const noop = defineJob('noop', { run: () => {} })
const nobody = '01890a5d-ac96-774b-bcce-b302099a8057'

test('strangers cost the database next to nothing: neither false keys nor questions for readiness', async ({
  url,
  open,
  serve,
}) => {
  const wire = await makeWire(url)
  const hf = await open({ url: wire.url, jobs: [noop] })
  const { call, as, url: at } = await serve(hf, { jobs: [noop], needsKey: true })
  const [good, unseen] = [await as(null, 'read'), await as(null, 'read')]
  expect((await call('/v1/jobs', { key: good.key })).status).toBe(200)
  const from = wire.statements.length
  const startedMs = performance.now()
  const seen = new Map<number, number>()
  for (let index = 0; index < 40; index++) {
    const keys = Array.from(
      { length: 20 },
      (_, n) => `hf_${(index * 20 + n).toString(16).padStart(32, '0')}_${'a'.repeat(43)}`,
    )
    const answers = await Promise.all([
      ...keys.map((key) => call('/v1/jobs', { key })),
      ...keys.map(() => call('/readyz')),
    ])
    for (const { status } of answers) seen.set(status, (seen.get(status) ?? 0) + 1)
  }
  // a good key that this server has not seen yet is let in from another address, in the middle of it
  const elsewhere = await openSocket(Number(new URL(at).port), '127.0.0.2')
  const flood = Array.from({ length: 50 }, (_, n) =>
    call('/v1/jobs', { key: `hf_${n.toString(16).padStart(32, 'f')}_${'b'.repeat(43)}` }),
  )
  elsewhere.socket.write(get('/v1/jobs', `Authorization: Bearer ${unseen.key}`))
  const [letIn] = await Promise.all([elsewhere.answer(), ...flood])
  elsewhere.socket.destroy()
  expect(statusOf(letIn)).toBe(200)
  expect((await call('/v1/jobs', { key: good.key })).status).toBe(200)
  const seconds = (performance.now() - startedMs) / 1000
  const asked = (name: string) => wire.statements.slice(from).filter((one) => one === name).length
  console.log(
    `800 false keys and 800 questions in ${seconds.toFixed(1)} s: ${asked('api_key.find')} and ${asked('migration.applied')} statements`,
  )
  expect(seen.get(200)).toBe(800)
  expect(seen.get(429) ?? 0).toBeGreaterThan(0)
  // keys that come together are looked up together
  expect(asked('api_key.find')).toBeLessThan(130)
  expect(asked('migration.applied')).toBeLessThan(3 + 2 * seconds)
})

test('a flood of keys that are none becomes as slow as its connections are few, and a good key is not held up', async ({
  open,
  serve,
}) => {
  const hf = await open({ jobs: [noop] })
  const config = { ...hf.config, httpPort: 0, httpKeyTries: 1, httpRefusalMs: 60_000 }
  const { call, as, server } = await serve(hf, { jobs: [noop], needsKey: true, config })
  const good = await as(null, 'read')
  const refusals = Array.from({ length: 12 }, (_, n) => call('/v1/jobs', { key: `hf_${n}${'x'.repeat(5_000)}` }))
  let told = 0
  for (const refusal of refusals) void refusal.then(() => told++)
  await until(() => told >= 10)
  for (let turn = 0; turn < 3; turn++) expect((await call('/v1/jobs', { key: good.key })).status).toBe(200)
  expect(told).toBeLessThan(12)
  // whoever waits is answered when the server stops
  await server.stop()
  expect(new Set((await Promise.all(refusals)).map(({ status }) => status))).toEqual(new Set([401]))
})

test('without a key nobody gets in, and nothing is done for them', async ({ open, serve, query }) => {
  const hf = await open({ jobs: [noop] })
  const { call, post } = await serve(hf, { jobs: [noop], needsKey: true })
  for (const key of [undefined, 'hf_nothing', `hf_${'0'.repeat(32)}_${'a'.repeat(43)}`]) {
    const answer = await post('/v1/jobs', { kind: 'noop' }, key ? { authorization: `Bearer ${key}` } : {})
    expect(answer.status).toBe(401)
    expect(answer.headers.get('www-authenticate')).toContain('Bearer')
    expect((await problem(answer)).code).toBe(key ? 'key_refused' : 'key_missing')
  }
  // not even a body that is far too large is read
  const huge = await call('/v1/jobs', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: 'x'.repeat(100_000),
  })
  expect(huge.status).toBe(401)
  for (const open of ['/livez', '/readyz', '/docs', '/openapi.json', '/'])
    expect([open, (await call(open)).status]).toEqual([open, 200])
  // the same fields as on the health port
  expect(await (await call('/livez')).json()).toMatchObject({
    isAlive: true,
    reasons: [],
    loops: expect.arrayContaining([{ loop: 'event loop', quietMs: expect.any(Number), limitMs: 10_000 }]),
  })
  expect((await call('/metrics')).status).toBe(401)
  expect(await query('select count(*)::int as count from holdfast.job_status where finished_at is null')).toEqual([
    { count: 0 },
  ])
})

test('a key does what its scopes say and no more, and is useless once revoked or expired', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ jobs: [noop] })
  const { as, url } = await serve(hf, { jobs: [noop], needsKey: true })
  const reader = await as(null, 'read')
  await expect(reader.submitJob({ body: { kind: 'noop' } })).rejects.toMatchObject({
    status: 403,
    code: 'scope_missing',
  })
  expect((await reader.listJobs()).status).toBe(200)
  const submitter = await as(null, 'submit')
  expect((await submitter.submitJob({ body: { kind: 'noop' } })).status).toBe(202)
  await expect(submitter.listJobs()).rejects.toMatchObject({ code: 'scope_missing' })
  await expect(submitter.pauseQueue({ path: { name: 'default' } })).rejects.toMatchObject({ code: 'scope_missing' })
  const admin = await as(null, 'admin')
  const { data } = await admin.createKey({
    body: { name: 'short', scopes: ['read'], tenant: null, expiresMs: 600_000 },
  })
  const short = createClient({ url, key: data?.key as string })
  expect((await short.listJobs()).status).toBe(200)
  await admin.revokeKey({ path: { id: data?.id as string } })
  await until(
    async () =>
      short.listJobs().then(
        () => false,
        (error) => error.code === 'key_refused',
      ),
    'the key is refused',
    5_000,
  )
  // a key for all tenants is made only by whoever says so, and may
  await expect(admin.createKey({ body: { name: 'whose', scopes: ['read'] } })).rejects.toMatchObject({ status: 422 })
  const ofOne = await as('mine', 'admin')
  await expect(ofOne.createKey({ body: { name: 'all', scopes: ['read'], tenant: null } })).rejects.toMatchObject({
    code: 'tenant_forbidden',
  })
  const expiring = await admin.createKey({ body: { name: 'past', scopes: ['read'], tenant: null, expiresMs: 1 } })
  const past = createClient({ url, key: expiring.data?.key as string })
  await until(
    async () =>
      past.listJobs().then(
        () => false,
        (error) => error.code === 'key_refused',
      ),
    'the key has expired',
    5_000,
  )
  // what is stored opens nothing
  const rows = await query<{ row: string }>('select row_to_json(api_key)::text as row from holdfast.api_key')
  const secret = String(data?.key).slice(-43)
  for (const { row } of rows) expect(row).not.toContain(secret)
})

test('whoever may read may try a repair without making it', async ({ open, serve, given }) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop], needsKey: true })
  const { id } = await given.finished('failed', { tenant: 'mine' })
  const reader = await as('mine', 'read')
  const { data } = await reader.repairJob({ path: { id }, body: { dryRun: true } })
  expect(data).toMatchObject({ isApplied: false, sentence: expect.stringContaining('Nothing was changed') })
  for (const body of [{}, { dryRun: false }])
    await expect(reader.repairJob({ path: { id }, body })).rejects.toMatchObject({ code: 'scope_missing' })
})

test('a tenant neither sees, counts, cancels nor guesses the jobs of another', async ({ open, serve, given }) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop], needsKey: true })
  const theirs = await hf.submit(noop, undefined as never, {
    tenant: 'theirs',
    key: 'k',
    delayMs: 60_000,
    meta: { secret: 'theirs' },
  })
  await given.finished('failed', { tenant: 'theirs' })
  const mine = await as('mine', 'admin')
  const path = { id: theirs.id }
  const isNotFound = { status: 404, code: 'job_not_found' }
  for (const call of [mine.getJob, mine.getResult, mine.getTimeline, mine.getFanOuts, mine.listItems])
    await expect(call({ path } as never)).rejects.toMatchObject(isNotFound)
  await expect(mine.cancelJob({ path, body: {} })).rejects.toMatchObject(isNotFound)
  await expect(mine.redoJob({ path, body: {} })).rejects.toMatchObject(isNotFound)
  const [there, gone] = await Promise.all(
    [theirs.id, nobody].map((id) => mine.getJob({ path: { id } }).catch((error) => error.message.replace(id, ''))),
  )
  expect(there).toBe(gone)
  expect((await mine.listJobs()).data).toEqual({ jobs: [], next: null })
  expect((await mine.listJobs({ query: { state: 'failed' } })).data).toEqual({ jobs: [], next: null })
  for (const queue of (await mine.listQueues()).data?.queues ?? [])
    expect(queue).toMatchObject({ queued: 0, scheduled: 0, running: 0, waiting: 0, oldestDueMs: null })
  await expect(mine.listJobs({ query: { tenant: 'theirs' } })).rejects.toMatchObject({
    status: 403,
    code: 'tenant_forbidden',
  })
  await expect(mine.listJobs({ query: { tenant: 'nobodys' } })).rejects.toMatchObject({
    status: 403,
    code: 'tenant_forbidden',
  })
  await expect(mine.submitJob({ body: { kind: 'noop', tenant: 'theirs' } })).rejects.toMatchObject({
    code: 'tenant_forbidden',
  })
  // the same key of another tenant is another key
  const own = await mine.submitJob({ body: { kind: 'noop', key: 'k', delayMs: 60_000 } })
  expect((own.data as { id: string }).id).not.toBe(theirs.id)
  for (const call of [mine.listSessions, mine.getRecovery, mine.listGroups])
    await expect(call()).rejects.toMatchObject({ status: 403, code: 'scope_missing' })
  await expect(mine.pauseQueue({ path: { name: 'default' } })).rejects.toMatchObject({ code: 'scope_missing' })
  const made = await mine.createKey({ body: { name: 'more', scopes: ['read'] } })
  expect(made.data?.tenant).toBe('mine')
  await expect(mine.createKey({ body: { name: 'more', scopes: ['read'], tenant: 'theirs' } })).rejects.toMatchObject({
    code: 'tenant_forbidden',
  })
  expect((await mine.listKeys()).data?.keys.map(({ tenant }) => tenant)).toEqual(['mine', 'mine'])
  expect(await hf.state(theirs.id)).toBe('queued')
})

test('a key for all tenants sees all, and one tenant if it asks', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop], needsKey: true })
  const all = await as(null, 'submit', 'read')
  for (const tenant of ['a', 'b', undefined])
    await all.submitJob({ body: { kind: 'noop', delayMs: 60_000, ...(tenant ? { tenant } : {}) } })
  expect((await all.listJobs()).data?.jobs.map(({ tenant }) => tenant)).toEqual(['default', 'b', 'a'])
  expect((await all.listJobs({ query: { tenant: 'a' } })).data?.jobs).toMatchObject([{ tenant: 'a' }])
})

test('without keys only this machine is let in, by its own name and from no foreign page', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { url, call } = await serve(hf, { jobs: [noop], needsKey: false })
  expect((await call('/v1/jobs')).status).toBe(200)
  const { port } = new URL(url)
  const evil = await rawRequest(
    Number(port),
    'GET /v1/jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n',
  )
  expect(evil).toContain('403')
  expect(evil).toContain('host_refused')
  expect((await call('/v1/jobs', { headers: { origin: 'https://evil.example' } })).status).toBe(403)
  expect((await call('/v1/jobs', { headers: { origin: `http://127.0.0.1:${port}` } })).status).toBe(200)
})

test('every answer is one that no page can frame, sniff at or read from elsewhere', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf)
  for (const path of ['/v1/jobs', '/v1/nothing', '/docs', '/livez']) {
    const { headers } = await call(path)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
    expect(headers.get('content-security-policy')).toContain("default-src 'none'")
    expect(headers.get('access-control-allow-origin')).toBeNull()
  }
  const open2 = await serve(hf, {
    config: { ...hf.config, httpPort: 0, httpOrigins: ['https://app.example'] },
    needsKey: true,
  })
  const preflight = await open2.call('/v1/jobs', {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-method': 'POST' },
  })
  expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example')
  const foreign = await open2.call('/v1/jobs', {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  })
  expect(foreign.headers.get('access-control-allow-origin')).toBeNull()
})

test('bodies, rates and waits have limits, and each says what to do', async ({ open, serve, given }) => {
  const hf = await open({ jobs: [noop], maxInputBytes: 1_000 })
  const config = { ...hf.config, httpPort: 0, httpMaxBytes: 65_536, httpRate: 20, httpWaits: 2 }
  const { call, post, as } = await serve(hf, { jobs: [noop], config })
  const large = await post('/v1/jobs', { kind: 'noop', input: 'x'.repeat(70_000) })
  expect([large.status, (await problem(large)).code]).toEqual([413, 'body_too_large'])
  const chunked = await call('/v1/jobs', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: new ReadableStream({ pull: (c) => c.enqueue(new Uint8Array(10_000).fill(32)) }),
    duplex: 'half',
  } as RequestInit)
  expect([chunked.status, (await problem(chunked)).code]).toEqual([413, 'body_too_large'])
  const input = await post('/v1/jobs', { kind: 'noop', input: 'x'.repeat(2_000) })
  expect([input.status, (await problem(input)).code]).toEqual([413, 'input_too_large'])

  const { id } = await given.queued()
  const waiter = await as(null, 'read')
  const leaving = new AbortController()
  const held = [1, 2].map(() =>
    waiter.getResult({ path: { id }, header: { prefer: 'wait=30' } }, { signal: leaving.signal }),
  )
  await until(
    async () => (await (await call('/metrics')).text()).includes('holdfast_http_waits 2'),
    'the waits are used up',
  )
  const third = await waiter.getResult({ path: { id }, header: { prefer: 'wait=1' } }).catch((error) => error.code)
  expect(third).toBe('waits_exhausted')
  leaving.abort()
  await Promise.allSettled(held)
  // whoever leaves makes room
  await until(() =>
    waiter.getResult({ path: { id }, header: { prefer: 'wait=1' } }).then(
      ({ status }) => status === 202,
      () => false,
    ),
  )

  const quickly = await as(null, 'read')
  const answers = await Promise.all(Array.from({ length: 200 }, () => call('/v1/jobs', { key: quickly.key })))
  const refused = answers.find(({ status }) => status === 429) as Response
  expect((await problem(refused)).code).toBe('rate_limited')
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  await until(async () => (await call('/v1/jobs', { key: quickly.key })).status === 200, 'the rate is free again')
})

test('a client that sends its request drop by drop is cut off', async ({ open, serve }) => {
  const hf = await open()
  const { url } = await serve(hf, { config: { ...hf.config, httpPort: 0, httpHeaderMs: 300, httpBodyMs: 600 } })
  const port = Number(new URL(url).port)
  expect(await rawRequest(port, 'GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX-A: 1')).toMatch(/408|^$/)
  expect(
    await rawRequest(
      port,
      'POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
    ),
  ).toMatch(/408|400|^$/)
})

test('a server without a database lives, says why it is not ready, and becomes ready', async () => {
  const database = await newDatabase('empty')
  const config = readConfig({ ...quick, url: database.url, httpPort: 0 }, {})
  let at = 'postgres://nobody@127.0.0.1:1/nothing'
  const serving = makeServing({
    config,
    log: silent,
    needsKey: false,
    reach: () => connect({ ...config, url: at, log: silent }),
  })
  try {
    await serving.start()
    const url = serving.url()
    expect((await fetch(`${url}/livez`)).status).toBe(200)
    const says = (word: string) =>
      until(async () => {
        const answer = await fetch(`${url}/readyz`)
        const said = (await answer.json()) as { code: string; reason: string }
        // nobody needs a key to ask, so it names no database
        expect(said.reason).not.toContain('127.0.0.1')
        return answer.status === 503 && said.code === word
      }, `it says ${word}`)
    await says('database_unreachable')
    at = database.url
    await says('schema_missing')
    const refused = await fetch(`${url}/v1/jobs`)
    expect([refused.status, (await problem(refused)).code]).toEqual([503, 'not_running'])
    expect(refused.headers.get('retry-after')).toBe('1')
    await (await connect({ ...config, migrate: true, log: silent })).close()
    await until(async () => (await fetch(`${url}/readyz`)).status === 200, 'the server is ready')
    expect((await fetch(`${url}/v1/jobs`)).status).toBe(200)
  } finally {
    await serving.stop()
    await database.drop()
  }
})

/** Sends bytes as they are, and answers what comes back until the server ends the connection. */
async function rawRequest(port: number, text: string): Promise<string> {
  const socket = connectSocket(port, '127.0.0.1')
  let answer = ''
  socket.on('data', (part) => {
    answer += part
  })
  const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => resolve()))
  socket.write(text)
  await Promise.race([
    ended,
    wait(10_000).then(() => Promise.reject(new Error('The server did not end the connection.'))),
  ])
  return answer
}
