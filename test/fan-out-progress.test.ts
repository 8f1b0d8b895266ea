import { defineJob, type FanOutProgress, isComplete } from 'holdfast'
import { claimItems, finish, waiting } from './barrier/given.ts'
import { expect, gate, test, until } from './fixtures.ts'

test('progress never goes down and loses no count while many workers settle', { timeout: 90_000 }, async ({ open }) => {
  const many = defineJob('many', {
    stages: [
      {
        name: 'all',
        tolerate: { share: 1 },
        fanOut: () => Array.from({ length: 1_500 }, (_, n) => n),
        each: { retries: 0, run: (_ctx, n) => (n % 5 ? n : Promise.reject(new Error('every fifth'))) },
      },
    ],
  })
  const engines = await Promise.all([1, 2, 3].map(() => open({ jobs: [many], concurrency: 20, batchSize: 40 })))
  const [hf] = engines as [(typeof engines)[number]]
  const handle = await hf.submit(many, null)
  for (const engine of engines) await engine.work()
  const samples: FanOutProgress[] = []
  let isOver = false
  const sampling = (async () => {
    while (!isOver) samples.push(...(await hf.fanOuts(handle.id)))
  })()
  await handle.result()
  isOver = true
  await sampling
  const settled = samples.map(({ succeeded, failed, cancelled }) => succeeded + failed + cancelled)
  expect(settled).toEqual(settled.toSorted((a, b) => a - b))
  for (const { succeeded, failed, running, queued, total } of samples)
    if (total !== null) expect(succeeded + failed + running + queued).toBe(total)
  expect(new Set(settled).size).toBeGreaterThan(3)
  expect(await hf.fanOuts(handle.id)).toMatchObject([
    { total: 1_500, succeeded: 1_200, failed: 300, cancelled: 0, running: 0, queued: 0, isComplete: true, etaMs: 0 },
  ])
})

test('progress tells throughput and when the last item will have ended', async ({ given, store, hf, query }) => {
  const made = await waiting({ given, store }, { items: 10 })
  const items = await claimItems({ given }, made)
  await finish(store, items.slice(0, 5))
  await query(`update holdfast.barrier set opened_at = now() - interval '10 s'`)
  const [progress] = await hf.fanOuts(made.parent.id)
  expect(progress).toMatchObject({ total: 10, succeeded: 5, running: 5, queued: 0, isComplete: false })
  expect(progress?.perSecond).toBeCloseTo(0.5, 1)
  expect(progress?.etaMs).toBeGreaterThan(9_000)
  expect(progress?.etaMs).toBeLessThan(12_000)
})

test('whether all items are processed is true, false or unknown, and unknown is never taken for an answer', () => {
  expect(isComplete({ total: 3, settled: 3 })).toBe(true)
  expect(isComplete({ total: 0, settled: 0 })).toBe(true)
  expect(isComplete({ total: 3, settled: 2 })).toBe(false)
  expect(isComplete({ total: null, settled: 2 })).toBe('unknown')
  expect(isComplete({ total: 3, settled: null })).toBe('unknown')
  expect(isComplete({ total: 3, settled: -1 })).toBe('unknown')
})

test('while items are still being added, nobody knows when all are processed', async ({ open }) => {
  const go = gate()
  const half = gate()
  const slow = defineJob('slow', {
    stages: [
      {
        name: 'all',
        fanOut: async function* () {
          for (let n = 0; n < 10; n++) yield n
          half.open()
          await go.promise
          yield 10
        },
        each: () => {},
      },
    ],
  })
  const hf = await open({ jobs: [slow], batchSize: 5 })
  await hf.work()
  const handle = await hf.submit(slow, null)
  await half.promise
  const seen = await until(async () => {
    const [progress] = await hf.fanOuts(handle.id)
    return progress?.succeeded === 10 && progress
  }, 'ten items end before the last is there')
  expect(seen).toMatchObject({ total: null, isComplete: 'unknown', etaMs: null })
  expect(await hf.get(handle.id)).toMatchObject({ state: 'running' })
  go.open()
  expect(await handle.result()).toMatchObject({ output: { total: 11, succeeded: 11 } })
})

test('items are listed in pages, by state, over all fan-outs of a job', async ({ open }) => {
  const two = defineJob('two', {
    stages: [
      { name: 'first', fanOut: () => [1, 2, 3], each: () => {} },
      {
        name: 'second',
        tolerate: { count: 1 },
        fanOut: () => ['x', 'y'],
        each: { retries: 0, run: (_ctx, item) => (item === 'x' ? Promise.reject(new Error('no x')) : item) },
      },
    ],
  })
  const hf = await open({ jobs: [two] })
  await hf.work()
  const { id, result } = await hf.submit(two, null)
  await result()
  const places = (items: { stage: number; position: number }[]) => items.map(({ stage, position }) => [stage, position])
  const first = await hf.items(id, { limit: 2 })
  expect(places(first)).toEqual([
    [0, 0],
    [0, 1],
  ])
  const second = await hf.items(id, { limit: 2, after: first[1] as never })
  expect(places(second)).toEqual([
    [0, 2],
    [1, 0],
  ])
  expect(places(await hf.items(id, { after: second[1] as never }))).toEqual([[1, 1]])
  expect(await hf.items(id, { state: 'failed' })).toMatchObject([{ stage: 1, key: '0', error: { message: 'no x' } }])
  expect(await hf.fanOuts(id)).toMatchObject([
    { stage: 0, total: 3 },
    { stage: 1, total: 2, failed: 1 },
  ])
})
