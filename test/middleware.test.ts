import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { defineJob, type Heard, type HeardName, type Middleware } from 'holdfast'
import { z } from 'zod'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'

const key = randomBytes(32)

function seal(value: unknown): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value ?? null)), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64')
}

function unseal(stored: unknown): unknown {
  const bytes = Buffer.from(String(stored), 'base64')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAuthTag(bytes.subarray(12, 28))
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString())
}

const opened = (stored: unknown) => (stored === null ? null : unseal(stored))

/** As the page about middleware shows it. */
const encryption: Middleware = {
  submit: (next, job) => next({ ...job, input: seal(job.input) }),
  signal: (next, signal) => next({ ...signal, payload: seal(signal.payload) }),
  async run(next, attempt) {
    const outputs = Object.fromEntries(Object.entries(attempt.outputs).map(([name, output]) => [name, opened(output)]))
    const output = await next({ ...attempt, input: unseal(attempt.input), outputs, reads: opened })
    return output === undefined || output === null ? output : seal(output)
  },
}

const secret = 'tangerine'
const input = z.object({ patient: z.string(), pages: z.array(z.string()) })

test('with middleware that encrypts, no plaintext is in any table', async ({ open, query }) => {
  const seen: unknown[] = []
  const child = defineJob('child', {
    input: z.object({ page: z.string() }),
    run: ({ input: { page } }) => `${page} read`,
  })
  const scan = defineJob('scan', {
    input,
    stages: [
      { name: 'read', run: ({ input: given }) => ({ text: given.patient }) },
      {
        name: 'parts',
        fanOut: (_ctx, given) => given.pages,
        item: z.string(),
        each: async (ctx, page) => {
          seen.push((await ctx.parent()).input)
          return `${page} scanned`
        },
        join: async (_ctx, _summary, results) => {
          const all: unknown[] = []
          for await (const { item, output } of results) all.push([item, output])
          return all
        },
      },
      { name: 'children', fanOut: (_ctx, given) => given.pages.map((page) => ({ page })), each: child },
      { name: 'approve', wait: { signal: 'approved', timeoutMs: 60_000 } },
      { name: 'close', run: ({ outputs, input: given }) => [outputs, given] },
    ],
  })
  const hf = await open({ jobs: [scan, child], middleware: [encryption] })
  await hf.work()
  const given = { patient: secret, pages: [`${secret} 1`, `${secret} 2`] }
  const handle = await hf.submit(scan, given, { key: 'k', meta: { shown: true } })
  // the key covers what the caller passed, although no two ciphertexts are the same
  expect(await hf.submit(scan, given, { key: 'k' })).toMatchObject({ id: handle.id, isNew: false })
  await expect(hf.submit(scan, { patient: 1 } as never)).rejects.toMatchObject({ code: 'input_invalid' })
  await hf.submitMany(child, [{ input: { page: secret } }, { input: { page: secret } }])
  await hf.barrier.open({ id: 'b', parts: [], continuation: { job: child, input: { page: secret } } })
  await hf.signal(handle.id, 'approved', { by: secret })
  const result = await handle.result()
  expect(unseal(result.output)).toEqual([
    {
      read: { text: secret },
      parts: [
        [`${secret} 1`, `${secret} 1 scanned`],
        [`${secret} 2`, `${secret} 2 scanned`],
      ],
      children: expect.objectContaining({ succeeded: 2 }),
      approve: { by: secret },
    },
    given,
  ])
  expect(seen).toEqual([given, given])
  await until(async () => (await hf.list({ state: 'succeeded', items: true })).length === 8, 'all jobs have ended')
  for (const { table } of await tables(query)) {
    const rows = await query<{ row: string }>(`select t::text as row from holdfast.${table} as t`)
    for (const { row } of rows) {
      expect(row, table).not.toContain(secret)
      expect(row, table).not.toContain(Buffer.from(secret).toString('hex'))
    }
  }
  expect((await hf.audit()).violations).toEqual([])
})

function tables(query: <Row>(text: string) => Promise<Row[]>) {
  return query<{ table: string }>(
    `select quote_ident(relname) as table from pg_class where relnamespace = 'holdfast'::regnamespace and relkind in ('r', 'p')`,
  )
}

test('the first middleware is the outermost', async ({ open }) => {
  const order: string[] = []
  const named = (name: string): Middleware => ({
    async submit(next, job) {
      order.push(`${name} submits`)
      await next({ ...job, input: `${job.input}${name}` })
    },
    async run(next, attempt) {
      order.push(`${name} runs`)
      const output = await next(attempt)
      order.push(`${name} ran`)
      return `${output}${name}`
    },
  })
  const echo = defineJob('echo', { run: ({ input: given }) => given as string })
  const hf = await open({ jobs: [echo], middleware: [named('a'), {}, named('b')] })
  await hf.work()
  const handle = await hf.submit(echo, '' as never)
  expect(await handle.result()).toMatchObject({ output: 'abba' })
  expect(order).toEqual(['a submits', 'b submits', 'a runs', 'b runs', 'b ran', 'a ran'])
})

test('an error of a middleware refuses the submit, or counts as one of the handler, and harms no other job', async ({
  open,
  query,
}) => {
  const picky: Middleware = {
    submit(next, job) {
      if (job.input === 'never') throw new Error('Not this one.')
      return job.input === 'silent' ? undefined : next(job)
    },
    async run(next, attempt) {
      if (attempt.input === 'before') throw new Error('before the handler')
      const output = await next(attempt)
      if (attempt.input === 'after' && attempt.attempt === 1) throw new Error('after the handler')
      return output
    },
  }
  const echo = defineJob('echo', { retries: 1, run: ({ input: given }) => given as string })
  const hf = await open({ jobs: [echo], middleware: [picky] })
  const submit = (value: string) => hf.submit(echo, value as never)
  await expect(submit('never')).rejects.toThrow('Not this one.')
  await expect(submit('silent')).rejects.toMatchObject({ code: 'middleware_invalid' })
  await expect(hf.submitMany(echo, [{ input: 'ok' as never }, { input: 'never' as never }])).rejects.toThrow(
    'Not this one.',
  )
  expect(await query('select from holdfast.job')).toEqual([])
  await hf.work()
  const [before, after, fine] = await Promise.all([submit('before'), submit('after'), submit('fine')])
  expect(await fine.result()).toMatchObject({ output: 'fine' })
  expect(await after.result()).toMatchObject({ output: 'after' })
  expect(await hf.get(after.id)).toMatchObject({ failures: 1, attempt: 2 })
  await expect(before.result()).rejects.toMatchObject({
    details: { error: { code: 'handler_failed', message: 'before the handler' } },
  })
})

test('middleware sees what a handler throws, and may answer in its place', async ({ open }) => {
  const thrown: string[] = []
  const watching: Middleware = {
    async run(next, attempt) {
      if (attempt.input === 'cached') return 'from the cache'
      return next(attempt).catch((error) => {
        thrown.push(`${attempt.job.kind}/${attempt.stage} ${attempt.attempt}: ${error.message}`)
        throw error
      })
    },
  }
  const failing = defineJob('failing', {
    retries: 1,
    run: ({ input: given }) => {
      throw new Error(String(given))
    },
  })
  const hf = await open({ jobs: [failing], middleware: [watching] })
  await hf.work()
  expect(await (await hf.submit(failing, 'cached' as never)).result()).toMatchObject({ output: 'from the cache' })
  await expect((await hf.submit(failing, 'no' as never)).result()).rejects.toMatchObject({ code: 'job_failed' })
  expect(thrown).toEqual(['failing/run 1: no', 'failing/run 2: no'])
})

test('middleware that is none is refused at once', async ({ open }) => {
  const odd = (middleware: unknown) => open({ middleware: middleware as never })
  await expect(odd({})).rejects.toMatchObject({ code: 'middleware_invalid', message: expect.stringContaining('list') })
  await expect(odd([null])).rejects.toMatchObject({ code: 'middleware_invalid' })
  await expect(odd([{ sumbit: () => {} }])).rejects.toThrow(/did you mean submit/)
  await expect(odd([{ run: true }])).rejects.toThrow('middleware[0].run must be a function')
})

test('listeners hear what this process did, until they are removed', async ({ open }) => {
  const heard: Heard[] = []
  const kind = defineJob('kind', {
    retries: 1,
    run: ({ input: given, attempt, snooze }) => {
      if (given === 'doomed' || (given === 'flaky' && attempt === 1)) throw new Error('It broke.')
      if (given === 'sleepy' && attempt === 1) snooze(10)
    },
  })
  const hf = await open({ jobs: [kind], backoffBaseMs: 10 })
  const names: HeardName[] = ['succeeded', 'failed', 'retried', 'snoozed', 'cancelled']
  const removers = names.map((name) => hf.on(name, (told) => heard.push(told)))
  const later = await hf.submit(kind, 'later' as never, { delayMs: 3_600_000 })
  await hf.cancel(later.id)
  await hf.work()
  const submit = async (value: string) => (await hf.submit(kind, value as never)).result().catch(() => null)
  for (const value of ['fine', 'flaky', 'doomed', 'sleepy']) await submit(value)
  await until(() => heard.length === 8, 'all was heard')
  const words = ['cancelled', 'succeeded', 'retried', 'succeeded', 'retried', 'failed', 'snoozed', 'succeeded']
  expect(heard.map(({ name }) => name)).toEqual(words)
  expect(heard[5]).toMatchObject({ kind: 'kind', stage: 'run', attempt: 2, error: { message: 'It broke.' } })
  for (const remove of removers) remove()
  await submit('fine')
  expect(heard).toHaveLength(8)
})

test('a listener that throws or rejects is logged, and harms neither jobs nor other listeners', async ({ open }) => {
  const lines: { facts: object; message: string }[] = []
  const note = (facts: object, message: string) => lines.push({ facts, message })
  const log = { debug: note, info: note, warn: note, error: note }
  const ok = defineJob('ok', { run: () => 'fine' })
  const hf = await open({ jobs: [ok], log: log as never })
  const second = gate<Heard>()
  hf.on('succeeded', () => {
    throw new Error('It broke.')
  })
  hf.on('succeeded', () => Promise.reject(new Error('It broke later.')))
  hf.on('succeeded', second.open)
  await hf.work()
  const handle = await hf.submit(ok, null)
  expect(await handle.result()).toMatchObject({ output: 'fine' })
  expect(await second.promise).toEqual({
    name: 'succeeded',
    id: handle.id,
    kind: 'ok',
    stage: 'run',
    attempt: 1,
    error: null,
  })
  const told = () => lines.filter(({ message }) => message === 'a listener failed').map(({ facts }) => facts)
  await until(() => told().length === 2, 'both are logged')
  expect(told()).toEqual([
    { listener: 'succeeded', job: handle.id, reason: 'It broke.' },
    { listener: 'succeeded', job: handle.id, reason: 'It broke later.' },
  ])
  expect(() => hf.on('suceeded' as never, () => {})).toThrow(/There is nothing called "suceeded"/)
  expect(() => hf.on('failed', null as never)).toThrow('must be a function')
})

test('the leader tells its listeners what it revived', async ({ url, open }) => {
  const hf = await open(swift)
  const revived = gate<Heard>()
  hf.on('revived', revived.open)
  const worker = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.runs(id)
  await worker.kill('SIGKILL')
  await hf.reap()
  expect(await revived.promise).toMatchObject({ name: 'revived', id, kind: 'hold', attempt: 1 })
})
