import { runInNewContext } from 'node:vm'
import { defineJob, HoldfastError } from 'holdfast'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { expect, test } from './fixtures.ts'

const read = defineJob('read', { input: z.object({ page: z.number() }), run: ({ input }) => input.page })
const write = defineJob('write', { run: () => {} })

test('a submitted job is queued, with its input and one event', async ({ hf }) => {
  const { id, isNew } = await hf.submit(read, { page: 7 }, { tenant: 'acme', meta: { from: 'test' } })
  expect(isNew).toBe(true)
  expect(await hf.get(id)).toMatchObject({
    state: 'queued',
    attempt: 0,
    stage: 0,
    failures: 0,
    input: { page: 7 },
    tenant: 'acme',
    meta: { from: 'test' },
  })
  expect((await hf.timeline(id)).map(({ type }) => type)).toEqual(['job.submitted'])
})

test('what is submitted is what the caller gave, not what its schema makes of it', async ({ hf }) => {
  const trimming = defineJob('trimming', {
    input: z.object({ name: z.string().trim(), size: z.number().default(3) }),
    run: () => {},
  })
  const { id } = await hf.submit(trimming, { name: ' x ' })
  expect((await hf.get(id))?.input).toEqual({ name: ' x ' })
})

test('the same key submitted by 50 callers over several connections at once: one job, and everyone gets its id', async ({
  open,
  query,
}) => {
  const engines = await Promise.all(Array.from({ length: 5 }, () => open()))
  const callers = Array.from({ length: 50 }, (_, n) => engines[n % 5])
  const handles = await Promise.all(callers.map((hf) => hf?.submit(read, { page: 1 }, { key: 'once' })))
  expect(new Set(handles.map((handle) => handle?.id)).size).toBe(1)
  expect(handles.filter((handle) => handle?.isNew)).toHaveLength(1)
  for (const table of ['job', 'ready', 'job_key', 'event'])
    expect(await query(`select count(*)::int as n from holdfast.${table}`)).toEqual([{ n: 1 }])
  expect(await query('select input from holdfast.job_status where finished_at is null')).toEqual([
    { input: { page: 1 } },
  ])
  expect(await query('select from holdfast.job_payload')).toEqual([])
})

test('of 50 callers that submit the same key with meta, one stores it', async ({ open, query }) => {
  const engines = await Promise.all(Array.from({ length: 5 }, () => open()))
  const callers = Array.from({ length: 50 }, (_, n) => engines[n % 5])
  await Promise.all(callers.map((hf) => hf?.submit(read, { page: 1 }, { key: 'once', meta: { from: 'test' } })))
  for (const table of ['job', 'ready', 'job_payload', 'job_key', 'event'])
    expect(await query(`select count(*)::int as n from holdfast.${table}`)).toEqual([{ n: 1 }])
})

test('a key gives the same job even after it has finished', async ({ hf, given }) => {
  const { id } = await given.finished('succeeded', { key: 'done' })
  const again = await hf.submit(defineJob('sample', { run: () => {} }), null, { key: 'done' })
  expect(again).toMatchObject({ id, isNew: false })
})

test('the order in which an input is written does not matter to its key', async ({ hf }) => {
  const open = defineJob('open', { run: () => {} })
  const one = await hf.submit(open, { a: 1, b: { c: 2, d: [3] } }, { key: 'k' })
  const other = await hf.submit(open, { b: { d: [3], c: 2 }, a: 1 }, { key: 'k' })
  expect(other).toMatchObject({ id: one.id, isNew: false })
})

test('the same key with another input is refused, and nothing is written', async ({ hf, query }) => {
  const { id } = await hf.submit(read, { page: 1 }, { key: 'k' })
  await expect(hf.submit(read, { page: 2 }, { key: 'k' })).rejects.toMatchObject({
    code: 'key_conflict',
    message: expect.stringContaining(id),
  })
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 1 },
  ])
})

test('the same key for another kind is refused', async ({ hf }) => {
  await hf.submit(write, null, { key: 'k' })
  await expect(hf.submit(defineJob('other', { run: () => {} }), null, { key: 'k' })).rejects.toMatchObject({
    code: 'key_conflict',
  })
})

test('the same key of another tenant is another key', async ({ hf }) => {
  const one = await hf.submit(read, { page: 1 }, { key: 'k', tenant: 'a' })
  const other = await hf.submit(read, { page: 2 }, { key: 'k', tenant: 'b' })
  expect(other).toMatchObject({ isNew: true })
  expect(other.id).not.toBe(one.id)
})

test('equal keys with other inputs at once: one job wins, the rest are told so', async ({ open, query }) => {
  const engines = await Promise.all(Array.from({ length: 4 }, () => open()))
  const answers = await Promise.allSettled(
    Array.from({ length: 40 }, (_, n) => engines[n % 4]?.submit(read, { page: n }, { key: 'race' })),
  )
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const answer of answers)
    if (answer.status === 'rejected') expect(answer.reason).toMatchObject({ code: 'key_conflict' })
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 1 },
  ])
})

test('batches with the same keys in opposite order do not deadlock', async ({ open }) => {
  const engines = await Promise.all([open(), open()])
  const keys = Array.from({ length: 100 }, (_, n) => ({ input: { page: n }, key: `k${n}` }))
  for (let round = 0; round < 5; round++) {
    const mine = keys.map(({ input, key }) => ({ input, key: `${round} ${key}` }))
    const [one, other] = await Promise.all([
      engines[0]?.submitMany(read, mine),
      engines[1]?.submitMany(read, [...mine].reverse()),
    ])
    expect(one?.map(({ id }) => id)).toEqual(other?.map(({ id }) => id).reverse())
  }
})

test("an integrity error that is not the key's is raised, and told only to its own caller", async ({ hf, query }) => {
  await query(`alter table holdfast.job add constraint no_poison check (tenant <> 'poison')`)
  await expect(hf.submit(write, null, { tenant: 'poison', key: 'k' })).rejects.toThrow()
  const answers = await Promise.allSettled(['a', 'poison', 'b'].map((tenant) => hf.submit(write, null, { tenant })))
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(await query(`select count(*)::int as n from holdfast.job_key`)).toEqual([{ n: 0 }])
})

test('many submits at once each get an id of their own, in few transactions', async ({ hf, query }) => {
  const handles = await Promise.all(Array.from({ length: 2_000 }, (_, page) => hf.submit(read, { page })))
  expect(new Set(handles.map(({ id }) => id)).size).toBe(2_000)
  const [row] = await query(
    'select count(*)::int as jobs, count(distinct xmin::text)::int as commits from holdfast.job',
  )
  expect(row?.jobs).toBe(2_000)
  expect(row?.commits).toBeLessThan(40)
})

test('ten thousand jobs are submitted together, in the order given', async ({ hf, query }) => {
  const handles = await hf.submitMany(
    read,
    Array.from({ length: 10_000 }, (_, page) => ({ input: { page } })),
  )
  const rows = await query<{ id: string; page: string }>(
    `select id, input ->> 'page' as page from holdfast.job_status where finished_at is null`,
  )
  const pages = new Map(rows.map(({ id, page }) => [id, Number(page)]))
  expect(handles.map(({ id }) => pages.get(id))).toEqual(handles.map((_, page) => page))
  expect(await query('select count(distinct xmin::text)::int as commits from holdfast.job')).toEqual([{ commits: 1 }])
})

test('many jobs are submitted all or none: one bad input, or one taken key, and nothing is written', async ({
  open,
  query,
}) => {
  const hf = await open({ batchSize: 500 })
  await hf.submit(read, { page: 0 }, { key: 'taken' })
  const good = Array.from({ length: 700 }, (_, page) => ({ input: { page } }))
  await expect(hf.submitMany(read, [...good, { input: { page: 'x' as never } }])).rejects.toMatchObject({
    code: 'input_invalid',
  })
  await expect(hf.submitMany(read, [...good, { input: { page: 9 }, key: 'taken' }])).rejects.toMatchObject({
    code: 'key_conflict',
  })
  await expect(hf.submitMany(read, [...good.slice(0, 5), { input: { page: 9 }, key: 'taken' }])).rejects.toMatchObject({
    code: 'key_conflict',
  })
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 1 },
  ])
})

/** Each spoils one late job of many, and says what must be told of it. */
const spoilt: [what: string, late: { input: { page: number }; tenant?: string; key?: string }, told: unknown][] = [
  ['whose input does not fit', { input: { page: 'x' as never } }, { code: 'input_invalid' }],
  ['that the database refuses', { input: { page: 9 }, tenant: 'poison' }, { code: '23514' }],
  ['whose key is taken', { input: { page: 9 }, key: 'taken' }, { code: 'key_conflict' }],
]

test.for(spoilt)(
  'of thousands of jobs in many batches, with one %s, none is stored',
  async ([, late, told], { open, query }) => {
    await query(`alter table holdfast.job add constraint no_poison check (tenant <> 'poison')`)
    const hf = await open({ batchSize: 100, poolSize: 2 })
    await hf.submit(read, { page: 0 }, { key: 'taken' })
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const good = Array.from({ length: 3_000 }, (_, page) => ({ input: { page } }))
    // in the last batch, in the one before it, in the middle, in the second, and in the first
    for (const place of [3_000, 2_850, 1_500, 150, 0]) {
      await expect(hf.submitMany(read, good.toSpliced(place, 0, late)), `at ${place}`).rejects.toMatchObject(
        told as object,
      )
      expect(await query('select from holdfast.job_status where finished_at is null'), `at ${place}`).toHaveLength(1)
    }
    expect(await query('select from holdfast.event')).toHaveLength(1)
    expect(await hf.submitMany(read, good)).toHaveLength(3_000)
    expect(await query('select from holdfast.job_status where finished_at is null')).toHaveLength(3_001)
    expect(
      await query(`select from pg_stat_activity where datname = current_database() and state like 'idle in trans%'`),
    ).toEqual([])
    expect(unhandled).toEqual([])
  },
)

test('a schema that takes its time holds up no batch and mixes up no job', async ({ open, query }) => {
  const slowly = defineJob('slowly', {
    input: z.object({ page: z.number() }).refine(async ({ page }) => page % 50 !== 13 || page < 1_000),
    run: () => {},
  })
  const hf = await open({ batchSize: 100 })
  const good = Array.from({ length: 950 }, (_, page) => ({ input: { page } }))
  const handles = await hf.submitMany(slowly, good)
  const rows = await query<{ id: string; page: number }>(
    `select id, (input ->> 'page')::int as page from holdfast.job_status where finished_at is null`,
  )
  const pages = new Map(rows.map(({ id, page }) => [id, page]))
  expect(handles.map(({ id }) => pages.get(id))).toEqual(good.map(({ input }) => input.page))
  await expect(hf.submitMany(slowly, [...good, { input: { page: 1_013 } }])).rejects.toMatchObject({
    code: 'input_invalid',
  })
  expect(await query('select from holdfast.job_status where finished_at is null')).toHaveLength(950)
})

test('of many jobs with keys and without, in many batches, each gets its own answer', async ({ open, query }) => {
  const hf = await open({ batchSize: 50 })
  const taken = await hf.submitMany(
    read,
    Array.from({ length: 20 }, (_, n) => ({ input: { page: n * 7 }, key: `k${n * 7}` })),
  )
  const all = Array.from({ length: 300 }, (_, page) => ({ input: { page }, ...(page % 7 ? {} : { key: `k${page}` }) }))
  const handles = await hf.submitMany(read, all)
  expect(handles.map(({ isNew }) => isNew)).toEqual(all.map((_, page) => page % 7 !== 0 || page >= 140))
  expect(handles.filter(({ isNew }) => !isNew).map(({ id }) => id)).toEqual(taken.map(({ id }) => id))
  const rows = await query<{ id: string; page: number }>(
    `select id, (input ->> 'page')::int as page from holdfast.job_status where finished_at is null`,
  )
  const pages = new Map(rows.map(({ id, page }) => [id, page]))
  expect(handles.map(({ id }) => pages.get(id))).toEqual(all.map((_, page) => page))
})

test('submitting no jobs writes nothing', async ({ hf, query }) => {
  expect(await hf.submitMany(read, [])).toEqual([])
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 0 },
  ])
})

test("a delay counts from the database's clock, and a time in the past means now", async ({ hf, query }) => {
  await hf.submit(write, null, { delayMs: 60_000 })
  await hf.submit(write, null, { runAt: new Date(0) })
  await hf.submit(write, null, { runAt: new Date('2100-01-01T00:00:00Z') })
  expect(
    await query(
      `select run_at - submitted_at = interval '60 s' as later, run_at = submitted_at as now, run_at from holdfast.job_status where finished_at is null order by id`,
    ),
  ).toMatchObject([{ later: true }, { now: true }, { run_at: new Date('2100-01-01T00:00:00Z') }])
})

test('a list shows the latest first, page by page, live and final alike', async ({ hf, given }) => {
  const ids: string[] = []
  for (let n = 0; n < 6; n++)
    ids.push((n % 2 ? await given.queued({ tenant: 'a' }) : await given.finished('failed', { tenant: 'a' })).id)
  await given.queued({ tenant: 'b' })
  const first = await hf.list({ tenant: 'a', limit: 4 })
  const second = await hf.list({ tenant: 'a', limit: 4, before: first.at(-1)?.id as string })
  expect([...first, ...second].map(({ id }) => id)).toEqual([...ids].reverse())
  expect((await hf.list({ state: ['failed'] })).map(({ state }) => state)).toEqual(['failed', 'failed', 'failed'])
  expect(await hf.list({ kind: 'nobody-has-this' })).toEqual([])
})

test('a job of another tenant is not found', async ({ hf }) => {
  const { id } = await hf.submit(write, null, { tenant: 'a' })
  expect(await hf.get(id, { tenant: 'b' })).toBe(null)
  await expect(hf.cancel(id, { tenant: 'b' })).rejects.toMatchObject({ code: 'job_not_found' })
  expect(await hf.get(id, { tenant: 'a' })).toMatchObject({ state: 'queued' })
})

test('a result that is not there in time is a time-out of the caller alone', async ({ hf }) => {
  const handle = await hf.submit(write, null)
  await expect(handle.result({ timeout: 20 })).rejects.toBeInstanceOf(HoldfastError)
  await expect(handle.result({ timeout: 20 })).rejects.toMatchObject({ code: 'result_timeout' })
  expect(await hf.get(handle.id)).toMatchObject({ state: 'queued' })
})

test('waiting for a result ends with its signal, and with the engine', async ({ open }) => {
  const hf = await open()
  const handle = await hf.submit(write, null)
  const stop = new AbortController()
  const stopped = expect(handle.result({ signal: stop.signal })).rejects.toThrow('enough')
  stop.abort(new Error('enough'))
  await stopped
  const closed = expect(handle.result()).rejects.toMatchObject({ code: 'not_running' })
  await hf.get(handle.id)
  await hf.close()
  await closed
})

test('what takes a look into the database to be made is made before the transaction, so that bulk submits never wait for each other', async ({
  open,
  query,
}) => {
  const hf = await open({ batchSize: 10, poolSize: 2 })
  const isKnown = async () => (await hf.list({ limit: 1 })) !== null
  const asking = defineJob('asking', { input: z.number().refine(isKnown), run: () => {} })
  const webhook = { url: 'https://example.com/x', secret: `whsec_${Buffer.alloc(32).toString('base64')}` }
  // a schema may answer at once for one value and take its time for the next
  const mooded = defineJob('mooded', { input: z.object({ id: z.number().refine(isKnown).optional() }), run: () => {} })
  const asked = Array.from({ length: 30 }, (_, n) => ({ input: n }))
  const rarely = Array.from({ length: 30 }, (_, n) => ({ input: n > 15 ? { id: n } : {} }))
  const hooked = Array.from({ length: 30 }, (_, n) => ({ input: n, ...(n > 15 && { webhook }) }))
  const all = await Promise.all([
    hf.submitMany(asking, asked),
    hf.submitMany(asking, asked),
    hf.submitMany(write, hooked),
    hf.submitMany(write, hooked),
    hf.submitMany(mooded, rarely),
    hf.submitMany(mooded, rarely),
  ])
  expect(all.map((handles) => handles.length)).toEqual([30, 30, 30, 30, 30, 30])
  expect(
    await query(
      'select kind, count(*)::int from holdfast.job_status where finished_at is null group by kind order by kind',
    ),
  ).toEqual([
    { kind: 'asking', count: 60 },
    { kind: 'mooded', count: 60 },
    { kind: 'write', count: 60 },
  ])
})

test('jobs that are too heavy for one statement are submitted in several, all or none, and alone', {
  timeout: 120_000,
}, async ({ hf, query }) => {
  const warnings: Error[] = []
  const warned = (warning: Error) => void warnings.push(warning)
  process.on('warning', warned)
  onTestFinished(() => void process.off('warning', warned))
  const input = 'x'.repeat(1024 * 1024 - 2)
  const count = async () =>
    (await query<{ n: number }>('select count(*)::int as n from holdfast.job_status where finished_at is null'))[0]?.n
  const many = await hf.submitMany(
    write,
    Array.from({ length: 40 }, () => ({ input })),
  )
  expect(many).toHaveLength(40)
  const heavy = Array.from({ length: 40 }, () => ({ input }))
  await expect(hf.submitMany(write, [...heavy, { input: `${input}x` }])).rejects.toMatchObject({
    code: 'input_too_large',
  })
  expect(await count()).toBe(40)
  await Promise.all(heavy.map((one) => hf.submit(write, one.input)))
  expect(await count()).toBe(80)
  // a statement that is sent while another one is under way is left to a queue that the driver will drop
  expect(warnings).toEqual([])
})

test('a refusal by a schema counts, whatever sort of promise it comes in', async ({ hf }) => {
  const issues = [{ message: 'no' }]
  const answers = [
    () => ({ issues }),
    () => Promise.resolve({ issues }),
    runInNewContext('async () => ({ issues: [{ message: "no" }] })'),
    // biome-ignore lint/suspicious/noThenProperty: the point of it
    () => ({ then: (resolve: (answer: unknown) => void) => resolve({ issues }) }),
  ]
  for (const validate of answers) {
    const strict = defineJob('strict', {
      input: { '~standard': { version: 1, vendor: 'test', validate } },
      run: () => {},
    })
    await expect(hf.submit(strict, null)).rejects.toMatchObject({ code: 'input_invalid' })
    await expect(hf.submitMany(strict, [{ input: null }])).rejects.toMatchObject({ code: 'input_invalid' })
  }
  expect(await hf.list({})).toEqual([])
})
