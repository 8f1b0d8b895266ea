import net from 'node:net'
import { connect, defineJob, type ErrorCode, type Holdfast, type SubmitHow } from 'holdfast'
import * as v from 'valibot'
import { z } from 'zod'
import { expect, test } from './fixtures.ts'

const open = defineJob('open', { run: () => {} })
const strict = defineJob('strict', { input: z.object({ page: z.number() }), run: () => {} })
const cycle: Record<string, unknown> = {}
cycle.self = cycle

// what types forbid still arrives from untyped callers
const submit = (hf: Holdfast, job: unknown, input: unknown, how?: unknown) =>
  hf.submit(job as typeof open, input, how as SubmitHow)

const refused: [what: string, job: unknown, input: unknown, how: unknown, code: ErrorCode, says: RegExp][] = [
  ['a kind by its name alone', 'open', null, {}, 'unknown_kind', /defineJob/],
  ['no kind', undefined, null, {}, 'unknown_kind', /defineJob/],
  ['an input that fails its schema', strict, { page: 'one' }, {}, 'input_invalid', /page/],
  ['no input where a schema wants one', strict, undefined, {}, 'input_invalid', /strict/],
  ['an input over the limit', open, 'x'.repeat(2_000), {}, 'input_too_large', /maxInputBytes/],
  [
    'an input over the limit in bytes though not in letters',
    open,
    '€'.repeat(500),
    {},
    'input_too_large',
    /1502 bytes/,
  ],
  ['a NUL byte', open, { text: 'a\0b' }, {}, 'not_storable', /input\.text.*NUL/],
  ['a lone surrogate', open, ['\ud83d'], {}, 'not_storable', /input\[0\].*surrogate/],
  ['NaN', open, { a: Number.NaN }, {}, 'not_storable', /input\.a is NaN/],
  ['a BigInt', open, 1n, {}, 'not_storable', /input is a bigint/],
  ['a cycle', open, cycle, {}, 'not_storable', /input\.self.*cycle/],
  ['a NUL byte in meta', open, null, { meta: { a: '\0' } }, 'not_storable', /meta\.a/],
  ['an empty key', open, null, { key: '' }, 'option_invalid', /key/],
  ['a key of 301 letters', open, null, { key: 'k'.repeat(301) }, 'option_invalid', /key/],
  ['a key with a NUL byte', open, null, { key: 'a\0' }, 'option_invalid', /key/],
  ['a key with a lone surrogate', open, null, { key: '\ud800' }, 'option_invalid', /key/],
  ['a tenant with a space', open, null, { tenant: 'a b' }, 'option_invalid', /tenant/],
  ['a priority of 5', open, null, { priority: 5 }, 'option_invalid', /priority/],
  ['a negative delay', open, null, { delayMs: -1 }, 'option_invalid', /delayMs/],
  ['a delay that is no number', open, null, { delayMs: '5' }, 'option_invalid', /delayMs/],
  ['an invalid date', open, null, { runAt: new Date(Number.NaN) }, 'option_invalid', /runAt/],
  ['a date beyond the year 9999', open, null, { runAt: new Date(8.64e15) }, 'option_invalid', /runAt/],
  [
    'both a time and a delay',
    open,
    null,
    { runAt: new Date(), delayMs: 1 },
    'option_invalid',
    /either runAt or delayMs/,
  ],
]

test('a job that cannot be accepted is refused with its own code before anything is written', async ({
  open: openEngine,
  query,
}) => {
  const hf = await openEngine({ maxInputBytes: 1_000 })
  for (const [what, job, input, how, code, says] of refused) {
    const told = { name: 'HoldfastError', code, message: expect.stringMatching(says) }
    await expect(submit(hf, job, input, how), what).rejects.toMatchObject(told)
  }
  for (const table of ['job', 'ready', 'job_payload', 'job_key', 'event'])
    expect(await query(`select count(*)::int as n from holdfast.${table}`), table).toEqual([{ n: 0 }])
})

test('an input that fails its schema is told with every issue, whatever library the schema is of', async ({ hf }) => {
  const byValibot = defineJob('valibot', { input: v.object({ a: v.number(), b: v.string() }), run: () => {} })
  await expect(submit(hf, byValibot, { a: 'x' })).rejects.toMatchObject({
    code: 'input_invalid',
    details: { issues: [expect.objectContaining({ path: 'a' }), expect.objectContaining({ path: 'b' })] },
  })
})

test('a bad input does not harm the good ones that are submitted at the same moment', async ({ hf, query }) => {
  const answers = await Promise.allSettled([1, 'x', 3].map((page) => submit(hf, strict, { page })))
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 2 },
  ])
})

test('an id that is no id is refused by every call that takes one', async ({ hf }) => {
  for (const bad of ['', '42', 'not-an-id', null, undefined, 42] as string[]) {
    const calls = [
      () => hf.get(bad),
      () => hf.cancel(bad),
      () => hf.redo(bad),
      () => hf.timeline(bad),
      () => hf.list({ before: bad ?? 'x' }),
    ]
    for (const call of calls) await expect((async () => call())()).rejects.toMatchObject({ code: 'id_invalid' })
    expect(() => hf.handle(bad)).toThrow(expect.objectContaining({ code: 'id_invalid' }))
  }
})

test('an id that nobody has is not found', async ({ hf }) => {
  const nobody = '01890a5d-ac96-774b-bcce-b302099a8057'
  expect(await hf.get(nobody)).toBe(null)
  expect(await hf.timeline(nobody)).toEqual([])
  for (const call of [() => hf.cancel(nobody), () => hf.redo(nobody), () => hf.handle(nobody).result()])
    await expect(call()).rejects.toMatchObject({ code: 'job_not_found' })
})

test('a list by an unknown state, or with a limit out of range, is refused', async ({ hf }) => {
  for (const bad of [{ state: 'gone' as 'queued' }, { limit: 0 }, { limit: 1_001 }, { limit: 1.5 }])
    await expect(hf.list(bad)).rejects.toMatchObject({ code: 'option_invalid' })
})

test('a NUL byte in a reason or a filter is refused with a code of our own', async ({ hf, given }) => {
  const { id } = await given.queued()
  await expect(hf.cancel(id, { reason: 'a\0b' })).rejects.toMatchObject({ code: 'option_invalid' })
  expect(await hf.get(id)).toMatchObject({ state: 'queued' })
  await expect(hf.pauseQueue('a\0b')).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(hf.list({ tenant: 'a\0b' })).rejects.toMatchObject({ code: 'option_invalid' })
})

test('a worker with an impossible concurrency is refused', async ({ open: openEngine }) => {
  const hf = await openEngine({ jobs: [open] })
  for (const concurrency of [0, -1, 1.5, Number.NaN])
    await expect(hf.work({ concurrency })).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('concurrency'),
    })
})

test('a worker without kinds, and two kinds of one name, are refused', async ({ hf, open: openEngine }) => {
  await expect(hf.work()).rejects.toMatchObject({ code: 'kind_invalid' })
  await expect(openEngine({ jobs: [open, open] })).rejects.toMatchObject({
    code: 'kind_invalid',
    message: expect.stringContaining('open'),
  })
})

test('neither a URL nor an embedded folder: refused with what to do', async () => {
  await expect(connect({ logLevel: 'silent' })).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('HOLDFAST_URL'),
  })
})

test('a wrong or unreachable database URL is told as a sentence, without its password', async ({ url }) => {
  const free = net.createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => free.once('listening', resolve))
  const { port } = free.address() as net.AddressInfo
  await new Promise((resolve) => free.close(resolve))
  const wrongPassword = new URL(url)
  wrongPassword.password = 'hunter2'
  const wrongName = new URL(url)
  wrongName.pathname = '/no_such_database'
  const wrong: [url: string, code: string][] = [
    ['not a url', 'config_invalid'],
    ['mysql://me:hunter2@localhost/x', 'config_invalid'],
    [`postgres://me:hunter2@127.0.0.1:${port}/x`, 'database_unreachable'],
    ['postgres://me:hunter2@no-such-host.invalid/x', 'database_unreachable'],
    [wrongPassword.href, 'database_refused'],
    [wrongName.href, 'database_refused'],
  ]
  for (const [bad, code] of wrong) {
    const error = await connect({ url: bad, logLevel: 'silent' }).then(
      () => undefined,
      (thrown) => thrown,
    )
    expect(error, bad).toMatchObject({ name: 'HoldfastError', code })
    expect(error.message).not.toContain('hunter2')
  }
  await expect(connect({ url: '', logLevel: 'silent' })).rejects.toMatchObject({ code: 'config_invalid' })
})

const unstorable: [what: string, output: unknown][] = [
  ['NaN', Number.NaN],
  ['a BigInt', { n: 1n }],
  ['a cycle', cycle],
  ['a NUL byte', 'a\0b'],
  ['a lone surrogate', { s: '\udc00' }],
  ['a function', () => 1],
]

test('a result that cannot be stored fails the job at once with a clear code, and the worker goes on', async ({
  open: openEngine,
}) => {
  const odd = defineJob('odd', { input: z.number(), run: ({ input }) => (unstorable[input]?.[1] ?? 'fine') as string })
  const hf = await openEngine({ jobs: [odd] })
  await hf.work()
  for (const [index, [what]] of unstorable.entries()) {
    const handle = await hf.submit(odd, index)
    await expect(handle.result(), what).rejects.toMatchObject({
      code: 'job_failed',
      details: { error: { code: 'output_invalid' } },
    })
    expect(await hf.get(handle.id)).toMatchObject({ state: 'failed', attempt: 1, outputs: {} })
  }
  expect(await (await hf.submit(odd, 99)).result()).toMatchObject({ output: 'fine' })
})

test('undefined in an input or an output is left out, as in JSON, and fails nothing', async ({ open: openEngine }) => {
  const seen: unknown[] = []
  const odd = defineJob('odd', {
    run: ({ input }) => {
      seen.push(input)
      return { u: undefined, deep: { u: undefined, n: 1 }, list: [undefined, 2] }
    },
  })
  const hf = await openEngine({ jobs: [odd] })
  await hf.work()
  const handle = await hf.submit(odd, { u: undefined, list: [undefined] }, { key: 'k', meta: { u: undefined } })
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: { deep: { n: 1 }, list: [null, 2] } })
  expect(seen).toEqual([{ list: [null] }])
  expect((await hf.submit(odd, { list: [null] }, { key: 'k' })).id).toBe(handle.id)
})

test('a result over the limit fails the job with its own code', async ({ open: openEngine }) => {
  const large = defineJob('large', { run: () => 'x'.repeat(2_000) })
  const hf = await openEngine({ jobs: [large], maxOutputBytes: 1_000 })
  await hf.work()
  await expect((await hf.submit(large, null)).result()).rejects.toMatchObject({
    details: { error: { code: 'output_too_large' } },
  })
})

test('a malformed stored input is a permanent failure with a clear code, not a crash loop', async ({
  open: openEngine,
  query,
}) => {
  const hf = await openEngine({ jobs: [strict] })
  const wrong = await hf.submit(strict, { page: 1 })
  const missing = await hf.submit(strict, { page: 2 })
  const wrongApart = await hf.submit(strict, { page: 3 }, { meta: {} })
  const missingApart = await hf.submit(strict, { page: 4 }, { meta: {} })
  await query(`update holdfast.job set input = '{"page": "torn"}' where id = $1`, [wrong.id])
  await query(`update holdfast.ready set input = '{"page": "torn"}' where job_id = $1`, [wrong.id])
  await query(`update holdfast.job set input = null where id = $1`, [missing.id])
  await query(`update holdfast.ready set input = null where job_id = $1`, [missing.id])
  await query(`update holdfast.job_payload set input = '{"page": "torn"}' where job_id = $1`, [wrongApart.id])
  await query(`delete from holdfast.job_payload where job_id = $1`, [missingApart.id])
  await hf.work()
  for (const handle of [wrong, missing, wrongApart, missingApart]) {
    await expect(handle.result()).rejects.toMatchObject({ details: { error: { code: 'input_invalid' } } })
    expect(await hf.get(handle.id)).toMatchObject({ state: 'failed', attempt: 1 })
  }
})

test('a schema that throws while it checks a stored input fails the job, not the worker', async ({
  open: openEngine,
}) => {
  let isBroken = false
  const moody = defineJob('moody', {
    input: z.custom<string>(() => {
      if (isBroken) throw new Error('the schema broke')
      return true
    }),
    run: () => 'ran',
  })
  const hf = await openEngine({ jobs: [moody] })
  const handle = await hf.submit(moody, 'x')
  isBroken = true
  await hf.work()
  await expect(handle.result()).rejects.toMatchObject({ details: { error: { code: 'input_invalid' } } })
})

test("whatever a handler throws becomes the job's error, cleaned of what cannot be stored", async ({
  open: openEngine,
}) => {
  const thrown: unknown[] = [
    'a text',
    undefined,
    null,
    new Error('NUL \0 and \ud800'),
    { odd: true },
    new Error('x'.repeat(10_000)),
  ]
  const throwing = defineJob('throwing', {
    input: z.number(),
    retries: 0,
    run: ({ input }) => {
      throw thrown[input]
    },
  })
  const hf = await openEngine({ jobs: [throwing] })
  await hf.work()
  for (const index of thrown.keys()) {
    const handle = await hf.submit(throwing, index)
    await expect(handle.result()).rejects.toMatchObject({ details: { error: { code: 'handler_failed' } } })
    expect(((await hf.get(handle.id))?.error?.message ?? '').length).toBeLessThan(3_000)
  }
})
