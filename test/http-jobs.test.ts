import { defineJob, PermanentError } from 'holdfast'
import { ApiError } from 'holdfast/client'
import { z } from 'zod'
import { expect, gate, problem, test, until } from './http/door.ts'

const greet = defineJob('greet', {
  input: z.object({ name: z.string() }),
  run: ({ input, progress }) => {
    progress(1, 2, 'half')
    return { hello: input.name }
  },
})
const breaks = defineJob('breaks', {
  run: () => {
    throw new PermanentError('It cannot be.')
  },
})
const pages = defineJob('pages', {
  stages: [
    { name: 'count', run: () => 3 },
    {
      name: 'read',
      fanOut: ({ outputs }) => Array.from({ length: outputs.count }, (_, page) => ({ page })),
      each: (ctx) => ctx.input,
    },
    {
      name: 'refine',
      optional: true,
      run: () => {
        throw new PermanentError('Nothing to refine.')
      },
    },
  ],
})

test('the generated client drives the whole life of a job', async ({ open, serve }) => {
  const hf = await open({ jobs: [greet, breaks, pages] })
  const { client } = await serve(hf)
  await hf.work()
  const events: string[] = []
  const ending = new AbortController()
  const listening = (async () => {
    for await (const event of client.streamEvents({ query: { types: 'job.*', after: '0' } }, { signal: ending.signal }))
      events.push(event.type)
  })()

  const submitted = await client.submitJob({ body: { kind: 'greet', input: { name: 'you' }, meta: { from: 'test' } } })
  expect(submitted.status).toBe(202)
  const { id } = submitted.data as { id: string }
  const result = await client.getResult({ path: { id }, header: { prefer: 'wait=10' } })
  expect(result).toMatchObject({
    status: 200,
    data: { state: 'succeeded', isPartial: false, output: { hello: 'you' }, error: null },
  })
  const job = await client.getJob({ path: { id } })
  expect(job.data).toMatchObject({
    id,
    state: 'succeeded',
    input: { name: 'you' },
    meta: { from: 'test' },
    outputs: { run: { hello: 'you' } },
    progress: { done: 1 },
  })
  const timeline = await client.getTimeline({ path: { id } })
  expect(timeline.data?.events.map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
  await until(() => events.includes('job.finished'))
  ending.abort()
  await listening

  const failed = await client.submitJob({ body: { kind: 'breaks' }, header: { prefer: 'wait=10' } })
  expect(failed).toMatchObject({
    status: 200,
    data: { state: 'failed', error: { code: 'permanent', message: 'It cannot be.' } },
  })
  const failedId = (failed.data as { id: string }).id
  await expect(client.getResult({ path: { id: failedId } })).rejects.toMatchObject({ code: 'job_failed', status: 409 })
  expect((await client.redoJob({ path: { id: failedId }, body: {} })).data).toEqual({ id: failedId, state: 'queued' })
  await until(async () => (await hf.get(failedId))?.attempt === 2 && (await hf.state(failedId)) === 'failed')
})

test('a partial result says so, and its fan-out and items can be looked at', async ({ open, serve }) => {
  const hf = await open({ jobs: [pages] })
  const { client } = await serve(hf)
  await hf.work()
  const { data } = await client.submitJob({ body: { kind: 'pages' }, header: { prefer: 'wait=20' } })
  const { id } = data as { id: string }
  const result = await client.getResult({ path: { id } })
  expect(result).toMatchObject({
    status: 200,
    data: { state: 'partial', isPartial: true, output: null, outputs: { count: 3 }, error: { code: 'permanent' } },
  })
  expect((await client.getFanOuts({ path: { id } })).data?.fanOuts).toMatchObject([
    { stage: 1, total: 3, succeeded: 3, isComplete: true },
  ])
  const first = await client.listItems({ path: { id }, query: { limit: 2 } })
  expect(first.data?.items.map(({ position }) => position)).toEqual([0, 1])
  const second = await client.listItems({ path: { id }, query: { limit: 2, cursor: first.data?.next as string } })
  expect(second.data).toMatchObject({ items: [{ position: 2, state: 'succeeded' }], next: null })
})

test('the same Idempotency-Key and body give the same answer, and another body is refused', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ jobs: [greet] })
  const { post } = await serve(hf, { jobs: [greet] })
  const body = { kind: 'greet', input: { name: 'you' }, priority: 1 }
  const key = { 'idempotency-key': 'order-1' }
  const answers = await Promise.all(Array.from({ length: 8 }, () => post('/v1/jobs', body, key)))
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
  expect(new Set(texts).size).toBe(1)
  expect(answers[0]?.headers.get('location')).toBe(JSON.parse(texts[0] as string).url)
  expect(answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true')).toHaveLength(7)
  // the same values in another order are the same body
  const turned = await post('/v1/jobs', { priority: 1, input: { name: 'you' }, kind: 'greet' }, key)
  expect(await turned.text()).toBe(texts[0])
  for (const other of [
    { ...body, input: { name: 'me' } },
    { ...body, priority: 2 },
    { ...body, delayMs: 5 },
  ]) {
    const refused = await post('/v1/jobs', other, key)
    expect([refused.status, (await problem(refused)).code]).toEqual([422, 'key_conflict'])
  }
  expect(await query('select count(*)::int as count from holdfast.job_status where finished_at is null')).toEqual([
    { count: 1 },
  ])
})

test('many jobs are submitted all or none, and a repeated batch gives the same jobs', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ jobs: [greet, breaks] })
  const { post } = await serve(hf, { jobs: [greet, breaks] })
  const jobs = [{ kind: 'greet', input: { name: 'a' } }, { kind: 'breaks' }, { kind: 'greet', input: { name: 'b' } }]
  const key = { 'idempotency-key': 'batch-1' }
  const first = await post('/v1/jobs/batch', { jobs }, key)
  const text = await first.text()
  expect(first.status).toBe(202)
  expect(JSON.parse(text).jobs.map((job: { kind: string }) => job.kind)).toEqual(['greet', 'breaks', 'greet'])
  expect(await (await post('/v1/jobs/batch', { jobs }, key)).text()).toBe(text)
  for (const other of [
    jobs.slice(0, 2),
    [...jobs, { kind: 'breaks' }],
    [jobs[0], jobs[1], { kind: 'greet', input: { name: 'c' } }],
  ])
    expect((await post('/v1/jobs/batch', { jobs: other }, key)).status).toBe(422)
  const bad = await post('/v1/jobs/batch', { jobs: [jobs[0], { kind: 'greet', input: { name: 1 } }] })
  expect([bad.status, (await problem(bad)).code]).toEqual([422, 'input_invalid'])
  expect(await query('select count(*)::int as count from holdfast.job_status where finished_at is null')).toEqual([
    { count: 3 },
  ])
})

test('a submit for a kind that nobody knows says which there are', async ({ open, serve }) => {
  const hf = await open({ jobs: [greet] })
  const { client } = await serve(hf, { jobs: [greet] })
  const error = await client.submitJob({ body: { kind: 'great' } }).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toMatchObject({
    code: 'unknown_kind',
    status: 404,
    message: expect.stringContaining('did you mean greet?'),
  })
})

test('Prefer: wait answers as soon as the job has ended, and what there is when the time is over', async ({
  open,
  serve,
}) => {
  const held = gate()
  const slow = defineJob('slow', { run: () => held.promise })
  const hf = await open({ jobs: [slow] })
  const { client } = await serve(hf)
  await hf.work()
  const { data } = await client.submitJob({ body: { kind: 'slow' } })
  const { id } = data as { id: string }
  const early = await client.getResult({ path: { id }, header: { prefer: 'wait=0' } })
  expect([early.status, early.headers.get('retry-after')]).toEqual([202, '1'])
  const waiting = client.getResult({ path: { id }, header: { prefer: 'respond-async, wait=30' } })
  held.open()
  const late = await waiting
  expect([late.status, late.headers.get('preference-applied')]).toEqual([200, 'wait=30'])
})

test('the result of a job that goes on has the outputs of the stages that are done', async ({ open, serve }) => {
  const held = gate()
  const staged = defineJob('staged', {
    stages: [
      { name: 'draft', run: () => 'a draft' },
      { name: 'refine', run: () => held.promise },
    ],
  })
  const hf = await open({ jobs: [staged] })
  const { client } = await serve(hf)
  await hf.work()
  const { id } = await hf.submit(staged, null)
  await until(async () => (await hf.get(id))?.stage === 1, 'the second stage is due')
  expect(await client.getResult({ path: { id } })).toMatchObject({
    status: 202,
    data: { id, stage: 1, outputs: { draft: 'a draft' } },
  })
  held.open()
})

test('cancel tells "no such job" from "too late", and both are decided by the write', async ({ open, serve }) => {
  const hf = await open({ jobs: [greet] })
  const { client } = await serve(hf, { jobs: [greet] })
  const { data } = await client.submitJob({ body: { kind: 'greet', input: { name: 'x' }, delayMs: 60_000 } })
  const path = { id: (data as { id: string }).id }
  const answers = await Promise.allSettled(
    Array.from({ length: 5 }, () => client.cancelJob({ path, body: { reason: 'enough' } })),
  )
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const answer of answers)
    if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ status: 409, code: 'move_illegal' })
  await expect(
    client.cancelJob({ path: { id: '01890a5d-ac96-774b-bcce-b302099a8057' }, body: {} }),
  ).rejects.toMatchObject({ status: 404, code: 'job_not_found' })
})

test('what has nothing to say needs no body', async ({ open, serve }) => {
  const hf = await open({ jobs: [greet] })
  const { call, client } = await serve(hf, { jobs: [greet] })
  const { id } = await hf.submit(greet, { name: 'a' }, { delayMs: 60_000 })
  expect((await call(`/v1/jobs/${id}/cancel`, { method: 'POST' })).status).toBe(200)
  expect((await client.redoJob({ path: { id } })).data).toEqual({ id, state: 'queued' })
  const said = await call(`/v1/jobs/${id}/cancel`, { method: 'POST', headers: { 'content-type': 'application/json' } })
  expect(said.status).toBe(200)
  const text = await call(`/v1/jobs/${id}/redo`, { method: 'POST', body: '{}' })
  expect([text.status, (await problem(text)).code]).toEqual([415, 'content_type_unsupported'])
  expect((await call('/v1/jobs', { method: 'POST' })).status).toBe(415)
})

test('an unchanged job is answered with 304, and a changed one anew', async ({ open, serve }) => {
  const hf = await open({ jobs: [greet] })
  const { client, call } = await serve(hf, { jobs: [greet] })
  const { data } = await client.submitJob({ body: { kind: 'greet', input: { name: 'x' }, delayMs: 60_000 } })
  const path = `/v1/jobs/${(data as { id: string }).id}`
  const etag = (await call(path)).headers.get('etag') as string
  const same = await call(path, { headers: { 'if-none-match': `"other", ${etag}` } })
  expect([same.status, await same.text()]).toEqual([304, ''])
  await hf.cancel((data as { id: string }).id)
  expect((await call(path, { headers: { 'if-none-match': etag } })).status).toBe(200)
})

test('pages of a list go through all jobs once, with filters, and tell where the next begins', async ({
  open,
  serve,
  given,
}) => {
  const hf = await open({ jobs: [greet] })
  const { client, call } = await serve(hf, { jobs: [greet] })
  const ids: string[] = []
  for (let index = 0; index < 7; index++) {
    const { data } = await client.submitJob({
      body: { kind: 'greet', input: { name: String(index) }, delayMs: index % 2 ? 60_000 : 0 },
    })
    ids.unshift((data as { id: string }).id)
  }
  const { id: failed } = await given.finished('failed', { kind: 'greet' })
  const seen: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await client.listJobs({ query: { limit: 3, ...(cursor ? { cursor } : {}) } })
    seen.push(...(page.data as { jobs: { id: string }[] }).jobs.map(({ id }) => id))
    const { next } = page.data as { next: string | null }
    if (next === null) break
    expect(page.headers.get('link')).toContain('rel="next"')
    cursor = next
  }
  expect(seen).toEqual([failed, ...ids])
  const found = await client.listJobs({ query: { state: 'failed,partial', kind: 'greet' } })
  expect((found.data as { jobs: { id: string }[] }).jobs.map(({ id }) => id)).toEqual([failed])
  const none = await client.listJobs({ query: { since: '2100-01-01T00:00:00Z' } })
  expect(none.data).toEqual({ jobs: [], next: null })
  for (const bad of ['state=odd', 'limit=0', 'limit=x', 'cursor=abc', 'since=yesterday', 'colour=red', 'kind=a&kind=b'])
    expect([bad, (await call(`/v1/jobs?${bad}`)).status]).toEqual([bad, 422])
})

test('a request id and a trace come back, and the trace becomes that of the job', async ({ open, serve, query }) => {
  const hf = await open({ jobs: [greet] })
  const { post } = await serve(hf, { jobs: [greet] })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const answer = await post(
    '/v1/jobs',
    { kind: 'greet', input: { name: 'x' } },
    { 'x-request-id': 'mine-1', traceparent },
  )
  expect(answer.headers.get('x-request-id')).toBe('mine-1')
  expect(answer.headers.get('traceparent')).toMatch(/^00-0af7651916cd43dd8448eb211c80319c-/)
  expect(await query('select trace from holdfast.job_payload')).toEqual([{ trace: traceparent }])
  const odd = await post(
    '/v1/jobs',
    { kind: 'greet', input: { name: 'x' } },
    { 'x-request-id': 'no way', traceparent: 'odd' },
  )
  expect(odd.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
})

test('a job that was removed is answered with 410 while its key is remembered, and only to its tenant', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ jobs: [greet], webhooks: false })
  const { as } = await serve(hf, { needsKey: true })
  const [mine, other] = [await as('acme', 'submit', 'read'), await as('other', 'read')]
  const working = await hf.work()
  const { id } = await hf.submit(greet, { name: 'you' }, { key: 'once', tenant: 'acme' })
  await hf.handle(id).result()
  await working.stop()
  await query(`update holdfast.outcome set finished_at = now() - interval '31 days'`)
  const keeping = await open({ keepKeysMs: 3_650 * 86_400_000, webhooks: false })
  expect(await keeping.prune()).toMatchObject({ removed: 1 })
  for (const ask of [() => mine.getJob({ path: { id } }), () => mine.getResult({ path: { id } })])
    await expect(ask()).rejects.toMatchObject({ status: 410, code: 'job_gone' })
  await expect(other.getJob({ path: { id } })).rejects.toMatchObject({ status: 404, code: 'job_not_found' })
  const again = await mine.submitJob({
    body: { kind: 'greet', input: { name: 'you' } },
    header: { 'idempotency-key': 'once' },
  })
  expect(again.data).toMatchObject({ id })
})
