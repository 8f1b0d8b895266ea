import { defineJob, PermanentError } from 'holdfast'
import { claimItems, fail, finish, producing, waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test } from './fixtures.ts'

/** Kinds whose items fail while `bad` holds them, with a count of how often each ran. */
function kindsWith(bad: Set<string>) {
  const runs: string[] = []
  const run = (item: string) => {
    runs.push(item)
    if (bad.has(item)) throw new PermanentError(`${item} is bad`)
    return item.toUpperCase()
  }
  const flat = defineJob('flat', {
    stages: [
      {
        name: 'all',
        tolerate: { count: 1 },
        fanOut: () => ['a', 'b', 'c', 'd'],
        each: (_ctx, item) => run(item),
        join: async (_ctx, summary, results) => {
          runs.push('join')
          const parts: unknown[] = []
          for await (const { output } of results) parts.push(output)
          return { summary, parts }
        },
      },
    ],
  })
  const then = defineJob('then', {
    stages: [
      {
        name: 'all',
        tolerate: { share: 0.5 },
        fanOut: () => ['a', 'b'],
        each: (_ctx, item) => run(item),
        join: (_ctx, summary) => summary.failed,
      },
      {
        name: 'after',
        run: ({ outputs }) => {
          run('after')
          return `${outputs.all} failed`
        },
      },
    ],
  })
  const inner = defineJob('inner', {
    stages: [{ name: 'all', fanOut: ({ input }) => [`${input}1`, `${input}2`], each: (_ctx, item) => run(item) }],
  })
  const outer = defineJob('outer', {
    stages: [{ name: 'all', tolerate: { share: 1 }, fanOut: () => ['x', 'y'], each: inner }],
  })
  return { runs, flat, then, inner, outer }
}

test('a redo of a partial parent runs only the items that failed, and joins again', async ({ open }) => {
  const bad = new Set(['b'])
  const { runs, flat } = kindsWith(bad)
  const hf = await open({ jobs: [flat] })
  await hf.work()
  const handle = await hf.submit(flat, null)
  expect(await handle.result()).toMatchObject({ state: 'partial', output: { parts: ['A', null, 'C', 'D'] } })
  const before = await hf.items(handle.id)
  bad.clear()
  runs.length = 0
  await hf.redo(handle.id)
  expect(await handle.result()).toMatchObject({
    state: 'succeeded',
    output: { summary: { total: 4, succeeded: 4, failed: 0, cancelled: 0 }, parts: ['A', 'B', 'C', 'D'] },
  })
  expect(runs).toEqual(['b', 'join'])
  const after = await hf.items(handle.id)
  expect(after.map(({ attempt }) => attempt)).toEqual([1, 2, 1, 1])
  expect(after.map(({ id }) => id)).toEqual(before.map(({ id }) => id))
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo of a failed parent runs what failed and what was cancelled, and nothing else', async ({ open }) => {
  const bad = new Set(['a', 'b'])
  const { runs, flat } = kindsWith(bad)
  const hf = await open({ jobs: [flat], concurrency: 1 })
  await hf.work()
  const handle = await hf.submit(flat, null)
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  const succeeded = (await hf.items(handle.id)).filter(({ state }) => state === 'succeeded').map(({ key }) => key)
  bad.clear()
  runs.length = 0
  await hf.redo(handle.id)
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: { parts: ['A', 'B', 'C', 'D'] } })
  expect(runs).toHaveLength(4 - succeeded.length + 1)
  expect(runs.at(-1)).toBe('join')
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo that fails again can be redone again', async ({ open }) => {
  const bad = new Set(['b'])
  const { flat } = kindsWith(bad)
  const hf = await open({ jobs: [flat] })
  await hf.work()
  const handle = await hf.submit(flat, null)
  await handle.result()
  for (let round = 2; round <= 4; round++) {
    await hf.redo(handle.id)
    expect(await handle.result()).toMatchObject({ state: 'partial' })
    expect((await hf.items(handle.id)).map(({ attempt }) => attempt)).toEqual([1, round, 1, 1])
  }
  expect((await hf.timeline(handle.id)).filter(({ type }) => type === 'job.joined')).toHaveLength(4)
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo of a job that is partial by an earlier fan-out goes back to that one', async ({ open }) => {
  const bad = new Set(['b'])
  const { runs, then } = kindsWith(bad)
  const hf = await open({ jobs: [then] })
  await hf.work()
  const handle = await hf.submit(then, null)
  expect(await handle.result()).toMatchObject({ state: 'partial', output: '1 failed' })
  bad.clear()
  runs.length = 0
  await hf.redo(handle.id)
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: '0 failed' })
  expect(runs).toEqual(['b', 'after'])
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo of a job that failed after a fan-out with flaws leaves the items alone', async ({ open }) => {
  const bad = new Set(['b', 'after'])
  const { runs, then } = kindsWith(bad)
  const hf = await open({ jobs: [then] })
  await hf.work()
  const handle = await hf.submit(then, null)
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  bad.delete('after')
  runs.length = 0
  await hf.redo(handle.id)
  expect(await handle.result()).toMatchObject({ state: 'partial', output: '1 failed' })
  expect(runs).toEqual(['after'])
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo reaches the failed items of failed items', async ({ open }) => {
  const bad = new Set(['x2'])
  const { runs, inner, outer } = kindsWith(bad)
  const hf = await open({ jobs: [inner, outer] })
  await hf.work()
  const handle = await hf.submit(outer, null)
  expect(await handle.result()).toMatchObject({ state: 'partial', output: { total: 2, succeeded: 1, failed: 1 } })
  bad.clear()
  const ran = runs.length
  await hf.redo(handle.id)
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: { total: 2, succeeded: 2, failed: 0 } })
  // its sibling x1 runs again only if the early stop had cancelled it
  expect(runs.slice(ran)).toContain('x2')
  expect(runs.slice(ran)).not.toContain('y1')
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo from the start makes new items', async ({ open, query }) => {
  const bad = new Set(['b'])
  const { runs, flat } = kindsWith(bad)
  const hf = await open({ jobs: [flat] })
  await hf.work()
  const handle = await hf.submit(flat, null)
  await handle.result()
  const before = (await hf.items(handle.id)).map(({ id }) => id)
  bad.clear()
  runs.length = 0
  await hf.redo(handle.id, { from: 'start' })
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: { parts: ['A', 'B', 'C', 'D'] } })
  expect(runs.toSorted()).toEqual(['a', 'b', 'c', 'd', 'join'])
  const after = (await hf.items(handle.id)).map(({ id }) => id)
  expect(after.filter((id) => before.includes(id))).toEqual([])
  expect(await query('select count(*)::int as n from holdfast.barrier')).toEqual([{ n: 1 }])
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo from the start takes the items with it that its first round left alive', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await producing({ given, store }, { items: 3 })
  await fail(store, [made.parent])
  await hf.redo(made.parent.id, { from: 'start' })
  await sweepOf(store)
  for (const id of made.items) expect(await hf.get(id)).toMatchObject({ state: 'cancelled' })
  expect(await query('select id from holdfast.job_status where finished_at is null')).toEqual([{ id: made.parent.id }])
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo of one item under a waiting parent takes back its count until it ends again', async ({
  given,
  store,
  hf,
}) => {
  const made = await waiting({ given, store }, { items: 2, tolerate: { count: 1 } })
  const [one, two] = await claimItems({ given }, made)
  await fail(store, [one as never])
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ failed: 1, queued: 0, running: 1 }])
  await hf.redo(one?.id as string)
  expect(await hf.fanOuts(made.parent.id)).toMatchObject([{ failed: 0, queued: 1, running: 1 }])
  await finish(store, [two as never])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'waiting' })
  const [again] = await claimItems({ given }, made)
  expect(again).toMatchObject({ id: one?.id, attempt: 2 })
  await finish(store, [again as never])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect((await hf.audit()).violations).toEqual([])
})

test('a redo of one item of a parent that has ended runs it again and fires nothing', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await waiting({ given, store }, { items: 1, tolerate: { count: 1 } })
  await fail(store, await claimItems({ given }, made))
  const [parent] = await claimItems({ given }, made)
  await finish(store, [parent as never])
  await hf.redo(made.items[0] as string)
  await finish(store, await claimItems({ given }, made))
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'succeeded', attempt: 2 })
  expect(await query(`select from holdfast.event where type = 'job.joined'`)).toHaveLength(1)
  expect((await hf.audit()).violations).toEqual([])
})
