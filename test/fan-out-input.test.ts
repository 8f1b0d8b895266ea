import { defineJob } from 'holdfast'
import { z } from 'zod'
import { expect, test, until } from './fixtures.ts'

// what types forbid still arrives from untyped callers
const define = (stage: object) => defineJob('bad', { stages: [{ name: 'all', ...stage } as never] })
const fanOut = () => [1]
const each = () => {}

test.for<[what: string, stage: object, says: RegExp]>([
  ['a threshold above 1', { fanOut, each, tolerate: { share: 1.1 } }, /tolerate\.share 1\.1; use a number from 0 to 1/],
  ['a threshold below 0', { fanOut, each, tolerate: { share: -0.1 } }, /tolerate\.share -0\.1/],
  ['a threshold that is no number', { fanOut, each, tolerate: { share: Number.NaN } }, /tolerate\.share NaN/],
  [
    'a count below 0',
    { fanOut, each, tolerate: { count: -1 } },
    /tolerates -1 failed items; use a non-negative whole number/,
  ],
  ['a count that is not whole', { fanOut, each, tolerate: { count: 1.5 } }, /tolerates 1\.5 failed items/],
  [
    'a threshold of both sorts',
    { fanOut, each, tolerate: { count: 1, share: 0.1 } },
    /must be a number of items, \{ count \} or \{ share \}/,
  ],
  ['an empty threshold', { fanOut, each, tolerate: {} }, /must be a number of items, \{ count \} or \{ share \}/],
  ['no each', { fanOut }, /fans out without `each`/],
  ['an each that cannot run', { fanOut, each: {} }, /fans out without `each`/],
  ['an each that is a word', { fanOut, each: 'kind' }, /fans out without `each`/],
  ['run beside a fan-out', { fanOut, each, run: () => {} }, /both `run` and a fan-out/],
  ['each without a fan-out', { each }, /without a `run` function/],
  ['a fanOut that is no function', { fanOut: [1], each }, /`fanOut` is not a function/],
  ['a join that is no function', { fanOut, each, join: 'all' }, /`join` is not a function/],
  ['retries of an item below 0', { fanOut, each: { run: each, retries: -1 } }, /each\.retries -1/],
  ['a time-out of an item of 0', { fanOut, each: { run: each, timeoutMs: 0 } }, /each\.timeoutMs 0/],
  [
    'a backoff of an item below 0',
    { fanOut, each: { run: each, backoff: { baseMs: -1 } } },
    /each\.backoff\.baseMs -1/,
  ],
  ['an expiry in the past', { fanOut, each, expiresMs: -1 }, /expiresMs -1/],
])('a kind with %s is refused when it is defined', ([, stage, says]) => {
  expect(() => define(stage)).toThrow(
    expect.objectContaining({ code: 'kind_invalid', message: expect.stringMatching(says) }),
  )
})

test.for<[what: string, stage: object, says: RegExp]>([
  [
    'two items with one key',
    { fanOut: () => ['a', 'b', 'a'], key: (item: string) => item },
    /Items 0 and 2 have the same key "a"/,
  ],
  ['an empty key', { fanOut: () => ['a'], key: () => '' }, /Item 0 has a key that cannot be stored: ""/],
  ['a key with a NUL byte', { fanOut: () => ['a'], key: () => 'a\0' }, /Item 0 has a key that cannot be stored/],
  [
    'an item that fails its schema',
    { fanOut: () => [1, 2, 'three'], item: z.number() },
    /Item 2 of stage all does not match its schema: .*number/,
  ],
  [
    'an undefined item',
    { fanOut: () => [1, undefined] },
    /Item 1 of stage all cannot be stored: items\[1\] is undefined/,
  ],
  ['an item that is no JSON', { fanOut: () => [1n] }, /Item 0 of stage all cannot be stored: items\[0\] is a bigint/],
  [
    'an item over the limit',
    { fanOut: () => ['x'.repeat(2_000)] },
    /Item 0 of stage all is larger than 1000 bytes \(setting maxInputBytes\)/,
  ],
  ['no items at all', { fanOut: () => undefined }, /fanned out to undefined; return an array or a generator/],
  ['a number instead of items', { fanOut: () => 3 }, /fanned out to a number/],
  ['a text instead of items', { fanOut: () => 'abc' }, /fanned out to a string/],
])('a fan-out to %s fails for good, says which, and leaves nothing alive', async ([, stage, says], { open, query }) => {
  const bad = define({ each, ...stage })
  const hf = await open({ jobs: [bad], maxInputBytes: 1_000 })
  await hf.work()
  const handle = await hf.submit(bad, null)
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed', message: expect.stringMatching(says) })
  expect(await hf.get(handle.id)).toMatchObject({ attempt: 1, error: { code: 'item_invalid' } })
  expect(await query('select from holdfast.job_status where finished_at is null')).toEqual([])
})

test('a bad item after good ones fails the parent, and the good ones are cancelled', async ({ open, query }) => {
  const bad = defineJob('bad', {
    stages: [
      {
        name: 'all',
        item: z.number(),
        fanOut: () => [...Array.from({ length: 30 }, (_, n) => n), 'odd' as never],
        each: ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', resolve)),
      },
    ],
  })
  const hf = await open({ jobs: [bad], batchSize: 10, concurrency: 5 })
  await hf.work()
  const handle = await hf.submit(bad, null)
  await expect(handle.result()).rejects.toThrow(/Item 30 of stage all/)
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null')).length === 0,
    'the sweep cancels the items',
  )
  expect(
    await query(
      'select state, count(*)::int as n from holdfast.job_status where finished_at is not null and is_part group by 1',
    ),
  ).toEqual([{ state: 'cancelled', n: 30 }])
})

test('a producer that throws is retried, and adds no item twice', async ({ open }) => {
  let runs = 0
  const torn = defineJob('torn', {
    stages: [
      {
        name: 'all',
        retries: 1,
        fanOut: function* () {
          runs += 1
          for (let n = 0; n < 20; n++) {
            if (runs === 1 && n === 15) throw new Error('torn')
            yield n
          }
        },
        each,
      },
    ],
  })
  const hf = await open({ jobs: [torn], batchSize: 5 })
  await hf.work()
  const handle = await hf.submit(torn, null)
  expect(await handle.result()).toMatchObject({ output: { total: 20, succeeded: 20 } })
  expect(await hf.items(handle.id)).toHaveLength(20)
  expect((await hf.audit()).violations).toEqual([])
})

test('a stored item that is malformed fails permanently, without a crash loop', async ({ open, query }) => {
  const strict = defineJob('strict', {
    stages: [{ name: 'all', item: z.number(), tolerate: { count: 1 }, fanOut: () => [1, 2], each: (_ctx, n) => n }],
  })
  const hf = await open({ jobs: [strict] })
  await hf.pauseQueue('default')
  const handle = await hf.submit(strict, null)
  await query(`
    create function holdfast.spoil() returns trigger language plpgsql as $$
    begin if new.item_key = '1' then new.input = '"two"'; end if; return new; end $$;
    create trigger spoil before insert on holdfast.job for each row execute function holdfast.spoil()`)
  await hf.resumeQueue('default')
  await hf.work()
  expect(await handle.result()).toMatchObject({ state: 'partial', output: { succeeded: 1, failed: 1 } })
  expect((await hf.items(handle.id))[1]).toMatchObject({
    state: 'failed',
    attempt: 1,
    error: { code: 'input_invalid' },
  })
})
