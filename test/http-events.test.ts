import { get } from 'node:http'
import { defineJob } from 'holdfast'
import { Live } from '#holdfast/http/live'
import { expect, test, until } from './http/door.ts'

const noop = defineJob('noop', { run: () => {} })

/** Reads a stream by hand until it has so many events. */
async function read(response: Response, count: number): Promise<{ id: string; type: string }[]> {
  const found: { id: string; type: string }[] = []
  let text = ''
  for await (const part of response.body ?? []) {
    text += Buffer.from(part).toString()
    const all = [...text.matchAll(/^id: (.+)\nevent: (.+)\n/gm)].map(([, id, type]) => ({
      id: id as string,
      type: type as string,
    }))
    if (all.length >= count) return all.slice(0, count)
  }
  return found
}

test('a stream tells what happens, and one that comes back gets exactly what it missed', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop] })
  const first = await call('/v1/events/stream?types=job.submitted')
  expect(first.headers.get('content-type')).toBe('text/event-stream')
  const submits = Promise.all(Array.from({ length: 5 }, () => hf.submit(noop, undefined as never)))
  const seen = await read(first, 3)
  await submits
  await Promise.all(Array.from({ length: 5 }, () => hf.submit(noop, undefined as never)))
  const again = await call('/v1/events/stream?types=job.submitted', {
    headers: { 'last-event-id': seen.at(-1)?.id as string },
  })
  const missed = await read(again, 7)
  const numbers = [...seen, ...missed].map(({ id }) => Number(id))
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  expect(numbers).toHaveLength(10)
})

test('what a long transaction commits late is told to a listener that comes back', async ({ open, serve, pool }) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop] })
  await hf.submit(noop, undefined as never)
  const started = await read(await call('/v1/events/stream?after=0'), 1)
  const client = await pool.connect()
  await client.query('begin')
  const late = await hf.submit(noop, undefined as never, { tx: client })
  // another listener keeps the reader going while nobody knows yet what the transaction will write
  const other = await call('/v1/events/stream')
  const after = await hf.submit(noop, undefined as never)
  const back = await call('/v1/events/stream', { headers: { 'last-event-id': started[0]?.id as string } })
  await client.query('commit')
  client.release()
  const told = await read(back, 2)
  expect(told).toHaveLength(2)
  await other.body?.cancel()
  expect((await hf.timeline(late.id)).map(({ seq }) => String(seq))).toEqual([told[0]?.id])
  expect((await hf.timeline(after.id)).map(({ seq }) => String(seq))).toEqual([told[1]?.id])
})

test('a tenant hears only its own events, and can count nothing by their ids', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { as, call } = await serve(hf, { jobs: [noop] })
  const mine = await as('mine', 'read', 'submit')
  const stream = await call('/v1/events/stream', { key: mine.key })
  await hf.submit(noop, undefined as never, { tenant: 'theirs' })
  await mine.submitJob({ body: { kind: 'noop' } })
  await hf.submit(noop, undefined as never, { tenant: 'theirs' })
  await mine.submitJob({ body: { kind: 'noop' } })
  const heard = await read(stream, 2)
  for (const { id } of heard) expect(id).not.toMatch(/^\d+$/)
  const back = await call('/v1/events/stream', { key: mine.key, headers: { 'last-event-id': heard[0]?.id as string } })
  expect(await read(back, 1)).toHaveLength(1)
  const listed = await mine.listEvents({ query: { types: 'job.*' } })
  expect(listed.data?.events.map(({ tenant }) => tenant)).toEqual(['mine', 'mine'])
  expect((await call('/v1/events?after=1', { key: mine.key })).status).toBe(422)
  expect((await call('/v1/events/stream?tenant=theirs', { key: mine.key })).status).toBe(403)
})

test('a thousand idle listeners share one reader, and all are told', async ({ open, serve, query }) => {
  const hf = await open({ jobs: [noop], poolSize: 5 })
  const { url } = await serve(hf, { jobs: [noop] })
  const told = new Set<number>()
  const sockets = await Promise.all(
    Array.from(
      { length: 1_000 },
      (_, index) =>
        new Promise<{ destroy(): void }>((resolve, reject) => {
          const request = get(`${url}/v1/events/stream?types=job.submitted`, { agent: false }, (response) => {
            response.on('data', (part) => String(part).includes('event: job.submitted') && told.add(index))
            resolve(request)
          })
          request.on('error', reject)
        }),
    ),
  )
  await hf.submit(noop, undefined as never)
  await until(() => told.size === 1_000, 'all listeners are told')
  const busy = await query<{ count: number }>(
    'select count(*)::int as count from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  )
  expect(busy[0]?.count).toBeLessThan(15)
  for (const socket of sockets) socket.destroy()
})

test('a client that is cut off before its first event loses nothing that happens meanwhile', async ({
  open,
  serve,
}) => {
  const hf = await open({ jobs: [noop] })
  const first = await serve(hf, { jobs: [noop] })
  const leaving = new AbortController()
  const events = first.client.streamEvents({ query: { types: 'job.submitted' } }, { signal: leaving.signal })
  const heard = events.next()
  await until(() => listenersOf(first.call, 1), 'it listens')
  await first.server.stop()
  const job = await hf.submit(noop, undefined as never)
  await serve(hf, { jobs: [noop], config: { ...hf.config, httpPort: Number(new URL(first.url).port) } })
  expect((await heard).value).toMatchObject({ type: 'job.submitted', job: job.id })
  leaving.abort()
  await events.return(undefined)
})

test('a key that is revoked hears nothing more, and gets no answer that it waited for', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { as, call } = await serve(hf, { jobs: [noop] })
  const mine = await as('mine', 'read')
  const stream = await call('/v1/events/stream?types=job.*', { key: mine.key })
  const { id } = await hf.submit(noop, undefined as never, { tenant: 'mine' })
  let heard = ''
  const ended = (async () => {
    for await (const part of stream.body ?? []) heard += Buffer.from(part).toString()
  })()
  await until(() => heard.includes('event: job.submitted'), 'it is told')
  const waiting = mine.getResult({ path: { id }, header: { prefer: 'wait=30' } }).catch((error) => error.code)
  const [known] = await hf.keys.list()
  await hf.keys.revoke(known?.id as string)
  await until(async () => (await call('/v1/jobs', { key: mine.key })).status === 401, 'the key is refused', 5_000)
  await hf.submit(noop, undefined as never, { tenant: 'mine', meta: { note: 'later' } })
  await ended
  expect(heard.match(/^event: /gm)).toHaveLength(1)
  await hf.cancel(id)
  expect(await waiting).toBe('key_refused')
})

test('HEAD of a stream leaves no listener behind', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call } = await serve(hf, { jobs: [noop] })
  const head = await call('/v1/events/stream', { method: 'HEAD' })
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  await until(() => listenersOf(call, 0), 'nobody listens')
})

test('a listener that ends before it has read anything leaves no reader behind', async ({ open, serve, query }) => {
  const hf = await open({ jobs: [noop] })
  const live = new Live(
    () => hf,
    () => {},
  )
  const leaving = new AbortController()
  await live.listen({ types: null, tenant: undefined, job: undefined, items: false }, null, leaving.signal)
  expect(live.listeners()).toBe(1)
  leaving.abort()
  expect(live.listeners()).toBe(0)
  await live.stop()
  // as over HTTP, where the place that the listener begins at could not be sealed
  const { call, as } = await serve(hf, { jobs: [noop], needsKey: true })
  const mine = await as('mine', 'read')
  await query('delete from holdfast.server_secret')
  expect((await call('/v1/events/stream', { key: mine.key })).status).toBeGreaterThanOrEqual(500)
})

test('a page of the log looks at a bounded number of events, and says where to look further', async ({
  open,
  serve,
  query,
}) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop] })
  const all = await as(null, 'read')
  const mine = await as('mine', 'read')
  await query(`insert into holdfast.event_log (type, job_id, kind, tenant)
    select 'job.advanced', gen_random_uuid(), 'noop', 'others' from generate_series(1, 120000)`)
  const { id } = await hf.submit(noop, undefined as never, { tenant: 'mine' })
  const pagesOf = async (client: typeof all) => {
    const pages = []
    for (let after: string | null | undefined; after !== null; ) {
      const { data } = await client.listEvents({ query: { types: 'job.submitted', ...(after ? { after } : {}) } })
      pages.push(data?.events.map(({ job }) => job))
      after = data?.next ?? null
    }
    return pages
  }
  expect(await pagesOf(all)).toEqual([[], [], [id]])
  // whoever sees one tenant looks at the events of that tenant, and learns nothing of how many others there are
  expect(await pagesOf(mine)).toEqual([[id]])
  expect(await pagesOf(await as('default', 'read'))).toEqual([[]])
  const { data } = await all.listEvents({ query: { job: id } })
  expect([data?.events.length, data?.next]).toEqual([1, null])
})

test('places in the log look alike to a tenant, however much others do', async ({ open, serve, query }) => {
  const hf = await open({ jobs: [noop] })
  const { as, call } = await serve(hf, { jobs: [noop] })
  const mine = await as('mine', 'read')
  await hf.submit(noop, undefined as never, { tenant: 'mine' })
  await query(`select setval('holdfast.event_seq', 5000000000)`)
  const last = await hf.submit(noop, undefined as never, { tenant: 'mine' })
  const { data } = await mine.listEvents()
  expect(new Set(data?.events.map(({ id }) => id.length)).size).toBe(1)
  // where a stream begins is another word each time, so it does not tell whether anything happened in between
  const begins = async () => {
    const stream = await call('/v1/events/stream', { key: mine.key })
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader()
    const { value } = await reader.read()
    await reader.cancel()
    return /^id: (\S+)$/m.exec(Buffer.from(value as Uint8Array).toString())?.[1] as string
  }
  const [one, two] = [await begins(), await begins()]
  expect(one).not.toBe(two)
  expect((await mine.listEvents({ query: { after: one } })).data).toEqual({ events: [], next: null })
  const { data: timeline } = await mine.getTimeline({ path: { id: last.id }, query: { limit: 1 } })
  expect(JSON.stringify(timeline)).not.toContain('5000000')
})

test('a log that begins with a high number, because the rest was dropped, is read at once', async ({ open, query }) => {
  const hf = await open({ jobs: [noop] })
  await query(`select setval('holdfast.event_seq', 5000000000)`)
  const { id } = await hf.submit(noop, undefined as never)
  expect(await hf.events.page()).toMatchObject({ events: [{ jobId: id }], next: null })
  const seen = []
  for await (const event of hf.events.watch({ after: 0, follow: false })) seen.push(event.jobId)
  expect(seen).toEqual([id])
})

test('an event has the same id however often a tenant reads it', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { as } = await serve(hf, { jobs: [noop] })
  const mine = await as('mine', 'read')
  await hf.submit(noop, undefined as never, { tenant: 'mine' })
  const own = { query: { types: 'job.*' } }
  const [one, two] = [await mine.listEvents(own), await mine.listEvents(own)]
  expect(one.data?.events).toHaveLength(1)
  expect(one.data).toEqual(two.data)
})

/** Whether the server tells of so many listeners. */
async function listenersOf(call: (path: string) => Promise<Response>, count: number): Promise<boolean> {
  return (await (await call('/metrics')).text()).includes(`holdfast_http_listeners ${count}`)
}

test('a server that stops ends streams and long polls with an answer', async ({ open, serve }) => {
  const hf = await open({ jobs: [noop] })
  const { call, client, server } = await serve(hf, { jobs: [noop] })
  const stream = await call('/v1/events/stream')
  const { data } = await client.submitJob({ body: { kind: 'noop', delayMs: 60_000 } })
  const waiting = client.getResult({ path: { id: (data as { id: string }).id }, header: { prefer: 'wait=60' } })
  const begunMs = performance.now()
  await until(
    async () => (await (await call('/metrics')).text()).includes('holdfast_http_waits 1'),
    'the request waits',
  )
  await server.stop()
  expect((await waiting).status).toBe(202)
  // the stream ends as one that is complete, and not by a broken connection
  expect(await stream.text()).toContain('retry:')
  expect(performance.now() - begunMs).toBeLessThan(4_000)
  await expect(call('/livez')).rejects.toThrow()
})
