import { defineJob, type ItemResult, PermanentError, type Summary, type Tolerance } from 'holdfast'
import * as z from 'zod'
import { expect, gate, test, until } from './fixtures.ts'

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

/** A kind that doubles numbers, and joins what came out. */
function doubling(kind: string, fanOut: (count: number) => Iterable<number> | AsyncIterable<number>) {
  return defineJob(kind, {
    input: z.number(),
    stages: [
      {
        name: 'double',
        fanOut: (_ctx, count) => fanOut(count),
        item: z.number(),
        each: (_ctx, item) => 2 * item,
        join: async (_ctx, summary, results) => ({ summary, doubled: await outputs(results) }),
      },
    ],
  })
}

async function outputs<Part>(results: AsyncIterable<ItemResult<unknown, Part>>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const { output } of results) all.push(output)
  return all
}

const asArray = doubling('as-array', numbers)
const asGenerator = doubling('as-generator', function* (count) {
  yield* numbers(count)
})
const asStream = doubling('as-stream', async function* (count) {
  for (const number of numbers(count)) yield await Promise.resolve(number)
})

test.for([asArray, asGenerator, asStream])(
  'a stage of kind $kind fans out, and joins with all results in order',
  async (job, { open }) => {
    const hf = await open({ jobs: [job], batchSize: 7 })
    await hf.work()
    const handle = await hf.submit(job, 20)
    expect(await handle.result()).toMatchObject({
      state: 'succeeded',
      output: {
        summary: { total: 20, succeeded: 20, failed: 0, cancelled: 0 },
        doubled: numbers(20).map((n) => 2 * n),
      },
    })
    expect((await hf.timeline(handle.id)).map(({ type }) => type)).toEqual([
      'job.submitted',
      'job.fanned_out',
      'job.joined',
      'job.finished',
    ])
    expect((await hf.audit()).violations).toEqual([])
  },
)

test('a fan-out of one item joins after that one', async ({ open }) => {
  const hf = await open({ jobs: [asArray] })
  await hf.work()
  expect(await (await hf.submit(asArray, 1)).result()).toMatchObject({ output: { doubled: [0] } })
})

test('an empty fan-out joins at once', async ({ open, query }) => {
  const hf = await open({ jobs: [asArray] })
  await hf.work()
  const handle = await hf.submit(asArray, 0)
  expect(await handle.result()).toMatchObject({
    state: 'succeeded',
    output: { summary: { total: 0, succeeded: 0, failed: 0, cancelled: 0 }, doubled: [] },
  })
  expect((await hf.timeline(handle.id)).map(({ type }) => type)).toEqual([
    'job.submitted',
    'job.fanned_out',
    'job.joined',
    'job.finished',
  ])
  expect(await query('select total from holdfast.barrier where joined_at is not null')).toEqual([{ total: 0 }])
})

test('a fan-out of a thousand items runs each of them once, and its results come in pages', async ({ open, query }) => {
  const hf = await open({ jobs: [asStream], batchSize: 400 })
  await hf.work()
  const handle = await hf.submit(asStream, 1_000)
  expect(await handle.result()).toMatchObject({
    output: { summary: { total: 1_000, succeeded: 1_000 }, doubled: numbers(1_000).map((n) => 2 * n) },
  })
  expect(
    await query(
      `select count(*)::int as n, max(attempt) as attempt from holdfast.job_status where finished_at is not null and is_part`,
    ),
  ).toEqual([{ n: 1_000, attempt: 1 }])
  expect(
    await query(`select count(*)::int as n from holdfast.event where type = 'job.joined' and job_id = $1`, [handle.id]),
  ).toEqual([{ n: 1 }])
})

test('without a join, what a fan-out returns is how its items ended', async ({ open }) => {
  const plain = defineJob('plain', { stages: [{ name: 'all', fanOut: () => [1, 2, 3], each: () => null }] })
  const hf = await open({ jobs: [plain] })
  await hf.work()
  expect(await (await hf.submit(plain, null)).result()).toMatchObject({
    output: { total: 3, succeeded: 3, failed: 0, cancelled: 0 } satisfies Summary,
  })
})

test('an item runs with its own key, tenant, stage and signal, and may report and log', async ({ open, query }) => {
  const seen: unknown[] = []
  const keyed = defineJob('keyed', {
    stages: [
      {
        name: 'pages',
        fanOut: () => ['a', 'b'],
        key: (page) => `page-${page}`,
        each: (ctx, page) => {
          seen.push([page, ctx.input, ctx.stage, ctx.job.tenant, ctx.attempt, ctx.signal.aborted])
          ctx.progress(1, 2)
          ctx.log('a page')
        },
      },
    ],
  })
  const hf = await open({ jobs: [keyed] })
  await hf.work()
  const handle = await hf.submit(keyed, null, { tenant: 'acme' })
  await handle.result()
  expect(seen.sort()).toEqual([
    ['a', 'a', 'pages', 'acme', 1, false],
    ['b', 'b', 'pages', 'acme', 1, false],
  ])
  expect(await hf.items(handle.id)).toMatchObject([
    { key: 'page-a', position: 0, state: 'succeeded' },
    { key: 'page-b', position: 1, state: 'succeeded' },
  ])
  expect(await query(`select from holdfast.event where type = 'job.log' and tenant = 'acme'`)).toHaveLength(2)
})

test('an item has its own retries and timeout', async ({ open }) => {
  const runs: string[] = []
  const careful = defineJob('careful', {
    stages: [
      {
        name: 'all',
        retries: 0,
        timeoutMs: 20_000,
        tolerate: { count: 1 },
        fanOut: () => ['flaky', 'hangs'],
        each: {
          retries: 2,
          timeoutMs: 60,
          backoff: { baseMs: 1 },
          run: async ({ attempt, signal }, item) => {
            runs.push(`${item} ${attempt}`)
            if (item === 'flaky' && attempt < 3) throw new Error('not yet')
            if (item === 'hangs') await new Promise((resolve) => signal.addEventListener('abort', resolve))
            signal.throwIfAborted()
            return 'done'
          },
        },
        join: async (_ctx, summary, results) => {
          const told: unknown[] = []
          for await (const { item, state, output, error } of results)
            told.push([item, state, output, error?.code ?? null])
          return { summary, told }
        },
      },
    ],
  })
  const hf = await open({ jobs: [careful] })
  await hf.work()
  const handle = await hf.submit(careful, null)
  expect(await handle.result()).toMatchObject({
    state: 'partial',
    output: {
      summary: { total: 2, succeeded: 1, failed: 1, cancelled: 0 },
      told: [
        ['flaky', 'succeeded', 'done', null],
        ['hangs', 'failed', null, 'timeout'],
      ],
    },
  })
  expect(runs.sort()).toEqual(['flaky 1', 'flaky 2', 'flaky 3', 'hangs 1', 'hangs 2', 'hangs 3'])
})

test('an item may be a job of another kind, which fans out itself', async ({ open }) => {
  const page = defineJob('page', {
    input: z.object({ page: z.number(), words: z.number() }),
    stages: [
      {
        name: 'words',
        fanOut: (_ctx, { words }) => numbers(words),
        each: (_ctx, word) => word,
        join: async (_ctx, { total }) => total,
      },
      { name: 'sum', run: ({ input, outputs }) => `page ${input.page}: ${outputs.words} words` },
    ],
  })
  const book = defineJob('book', {
    stages: [
      {
        name: 'pages',
        fanOut: () => [3, 0, 5].map((words, index) => ({ page: index + 1, words })),
        each: page,
        join: (_ctx, _summary, results) => outputs(results),
      },
      { name: 'bind', run: ({ outputs }) => outputs.pages },
    ],
  })
  const hf = await open({ jobs: [page, book] })
  await hf.work()
  const handle = await hf.submit(book, null)
  expect(await handle.result()).toMatchObject({
    state: 'succeeded',
    output: ['page 1: 3 words', 'page 2: 0 words', 'page 3: 5 words'],
  })
  expect((await hf.audit()).violations).toEqual([])
})

test('a fan-out among other stages has their outputs, and they have its own', async ({ open }) => {
  const three = defineJob('three', {
    stages: [
      { name: 'split', run: () => ['x', 'y'] },
      {
        name: 'each',
        fanOut: ({ outputs }) => outputs.split,
        each: (_ctx, letter) => `${letter}!`,
        join: (_ctx, _summary, results) => outputs(results),
      },
      { name: 'tell', run: ({ outputs }) => ({ outputs }) },
    ],
  })
  const hf = await open({ jobs: [three] })
  await hf.work()
  expect(await (await hf.submit(three, null)).result()).toMatchObject({
    output: { outputs: { split: ['x', 'y'], each: ['x!', 'y!'] } },
  })
})

test('a join that fails is tried again, without running an item again', async ({ open }) => {
  let items = 0
  let joins = 0
  const retried = defineJob('retried', {
    stages: [
      {
        name: 'all',
        retries: 1,
        fanOut: () => [1, 2, 3],
        each: () => {
          items += 1
        },
        join: async (_ctx, _summary, results) => {
          joins += 1
          if (joins === 1) throw new Error('not yet')
          return (await outputs(results)).length
        },
      },
    ],
  })
  const hf = await open({ jobs: [retried] })
  await hf.work()
  const handle = await hf.submit(retried, null)
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: 3 })
  expect({ items, joins }).toEqual({ items: 3, joins: 2 })
  const joined = (await hf.timeline(handle.id)).filter(({ type }) => type === 'job.joined')
  expect(joined).toHaveLength(1)
})

/** A kind whose items fail if their number is among those that the input names. */
function failing(kind: string, tolerate: Tolerance | undefined) {
  return defineJob(kind, {
    input: z.object({ items: z.number(), fail: z.array(z.number()) }),
    stages: [
      {
        name: 'all',
        ...(tolerate !== undefined && { tolerate }),
        fanOut: (_ctx, { items, fail }) => numbers(items).map((number) => ({ number, fail: fail.includes(number) })),
        each: (_ctx, { number, fail }: { number: number; fail: boolean }) => {
          if (fail) throw new PermanentError(`item ${number} is bad`)
          return number
        },
        join: async (_ctx, summary) => summary,
      },
    ],
  })
}

test('the final state follows from the failure threshold', async ({ open }) => {
  const strict = failing('strict', undefined)
  const counted = failing('counted', { count: 2 })
  const plain = failing('plain', 1)
  const shared = failing('shared', { share: 0.5 })
  const all = failing('all', { share: 1 })
  const hf = await open({ jobs: [strict, counted, plain, shared, all], concurrency: 1 })
  await hf.work()
  const end = async (job: typeof strict, items: number, fail: number[]) => {
    const { id } = await hf.submit(job, { items, fail })
    await until(async () => (await hf.get(id))?.finishedAt, 'the job ends')
    const { state, error, outputs } = (await hf.get(id)) as NonNullable<Awaited<ReturnType<typeof hf.get>>>
    return { state, code: error?.code ?? null, ...(outputs.all as Summary | undefined) }
  }
  expect(await end(strict, 3, [])).toMatchObject({ state: 'succeeded', failed: 0 })
  expect(await end(strict, 3, [2])).toEqual({ state: 'failed', code: 'items_failed' })
  expect(await end(counted, 5, [0, 4])).toMatchObject({ state: 'partial', code: null, succeeded: 3, failed: 2 })
  expect(await end(counted, 5, [0, 1, 4])).toEqual({ state: 'failed', code: 'items_failed' })
  expect(await end(plain, 3, [0])).toMatchObject({ state: 'partial', code: null, succeeded: 2, failed: 1 })
  expect(await end(plain, 3, [0, 2])).toEqual({ state: 'failed', code: 'items_failed' })
  expect(await end(shared, 4, [0, 1])).toMatchObject({ state: 'partial', succeeded: 2, failed: 2 })
  expect(await end(shared, 4, [0, 1, 3])).toEqual({ state: 'failed', code: 'items_failed' })
  expect(await end(shared, 0, [])).toMatchObject({ state: 'succeeded', total: 0 })
  expect(await end(all, 3, [0, 1, 2])).toMatchObject({ state: 'partial', succeeded: 0, failed: 3 })
  expect((await hf.audit()).violations).toEqual([])
})

test('a failed fan-out says how many of its items failed, and which stage could not bear it', async ({ open }) => {
  const strict = failing('strict', { count: 1 })
  const hf = await open({ jobs: [strict] })
  await hf.work()
  const handle = await hf.submit(strict, { items: 3, fail: [0, 1, 2] })
  await expect(handle.result()).rejects.toMatchObject({
    code: 'job_failed',
    message: expect.stringMatching(/\d of 3 items failed and \d were cancelled, more than stage all allows/),
  })
})

test('a stage after a fan-out with flaws ends the job partial, with every output readable', async ({ open }) => {
  const two = defineJob('two', {
    stages: [
      {
        name: 'flawed',
        tolerate: { count: 1 },
        fanOut: () => [1, 2, 3],
        each: (_ctx, item) => {
          if (item === 2) throw new PermanentError('two is bad')
          return item
        },
        join: (_ctx, _summary, results) => outputs(results),
      },
      { name: 'after', run: ({ outputs }) => ({ used: outputs.flawed }) },
    ],
  })
  const hf = await open({ jobs: [two] })
  await hf.work()
  const handle = await hf.submit(two, null)
  expect(await handle.result()).toMatchObject({
    state: 'partial',
    output: { used: [1, null, 3] },
    outputs: { flawed: [1, null, 3], after: { used: [1, null, 3] } },
    error: null,
  })
})

test('an optional stage whose fan-out fails leaves the job partial', async ({ open }) => {
  const spare = defineJob('spare', {
    stages: [
      { name: 'needed', run: () => 'kept' },
      {
        name: 'extra',
        optional: true,
        fanOut: () => [1],
        each: () => {
          throw new PermanentError('no')
        },
      },
    ],
  })
  const hf = await open({ jobs: [spare] })
  await hf.work()
  const handle = await hf.submit(spare, null)
  expect(await handle.result()).toMatchObject({
    state: 'partial',
    output: null,
    outputs: { needed: 'kept' },
    error: { code: 'items_failed' },
  })
  expect(await hf.items(handle.id)).toMatchObject([{ state: 'failed', error: { message: 'no' } }])
})

test('one failed item too many cancels the queued items at once and aborts the running ones', async ({
  open,
  query,
}) => {
  const running = gate<AbortSignal>()
  let started = 0
  const spoilt = defineJob('spoilt', {
    stages: [
      {
        name: 'all',
        fanOut: () => numbers(50),
        each: async ({ signal }) => {
          started += 1
          if (started === 2) throw new PermanentError('one is bad')
          running.open(signal)
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
        },
      },
    ],
  })
  // heartbeats and sweeps so slow that nothing but the stop itself can be in time
  const hf = await open({
    jobs: [spoilt],
    concurrency: 2,
    heartbeatMs: 10_000,
    lostAfterMs: 20_000,
    leaseMs: 30_000,
    leaderLeaseMs: 60_000,
    leaderRenewMs: 20_000,
    sweepMs: 50_000,
  })
  await hf.work()
  const handle = await hf.submit(spoilt, null)
  const signal = await running.promise
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  await until(() => signal.aborted, 'the running item is aborted')
  expect(signal.reason).toMatchObject({ reason: 'cancelled' })
  expect(
    await query(
      'select state, count(*)::int as n from holdfast.job_status where finished_at is not null and is_part group by 1 order by 1',
    ),
  ).toEqual([
    { state: 'cancelled', n: 49 },
    { state: 'failed', n: 1 },
  ])
  expect((await hf.audit()).violations).toEqual([])
})
