import { readdir } from 'node:fs/promises'
import { defineJob } from 'holdfast'
import { expect, test } from './fixtures.ts'

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
