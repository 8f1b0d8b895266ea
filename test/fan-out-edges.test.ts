import { readdir } from 'node:fs/promises'
import { defineJob } from 'holdfast'
import { waiting } from './barrier/given.ts'
import { expect, test, until } from './fixtures.ts'

test('a producer or a join that misses a file or a server of its own fails like any handler', async ({ open }) => {
  let runs = 0
  const kind = (name: string, stage: { fanOut: () => Promise<string[]>; join?: () => never }) =>
    defineJob(name, { stages: [{ name: 'all', retries: 1, each: () => 1, ...stage }] })
  const reads = kind('reads', {
    fanOut: () => {
      runs += 1
      return readdir('/nowhere/at/all')
    },
  })
  const joins = kind('joins', {
    fanOut: async () => ['a'],
    join: () => {
      runs += 1
      throw Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), { code: 'ECONNREFUSED' })
    },
  })
  const hf = await open({ jobs: [reads, joins] })
  await hf.work()
  for (const job of [reads, joins]) {
    runs = 0
    const handle = await hf.submit(job, null)
    await expect(handle.result({ timeout: 4_000 })).rejects.toMatchObject({ code: 'job_failed' })
    expect(runs).toBe(2)
  }
})

test('an item of a stage that fans out no more fails with the reason, and holds up nobody', async ({
  given,
  store,
  open,
}) => {
  const made = await waiting({ given, store }, { queue: 'shared', items: 3 })
  const sample = defineJob('sample', { queue: 'shared', run: () => 'it fanned out before' })
  const other = defineJob('other', { queue: 'shared', priority: 3, run: () => 'fine' })
  const hf = await open({ jobs: [sample, other], concurrency: 1 })
  const handle = await hf.submit(other, null)
  await hf.work()
  expect(await handle.result({ timeout: 5_000 })).toMatchObject({ output: 'fine' })
  const failed = await until(async () => {
    const items = await hf.items(made.parent.id, { state: 'failed' })
    return items.length > 0 && items
  })
  expect(failed[0]?.error?.message).toMatch('Stage run has no `each` in this version')
  expect(await hf.handle(made.parent.id).result()).toMatchObject({ output: 'it fanned out before' })
})
