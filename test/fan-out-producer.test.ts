import { defineJob, PermanentError } from 'holdfast'
import { expect, test } from './fixtures.ts'

/** Gives the numbers up to its input, and then throws. */
function torn(kind: string, how: { tolerate?: number; thrown?: () => Error; failing?: number } = {}) {
  const { tolerate = 0, thrown = () => new Error('The source went away.'), failing } = how
  let runs = 0
  return {
    runs: () => runs,
    job: defineJob(kind, {
      stages: [
        {
          name: 'all',
          retries: 1,
          tolerate: { count: tolerate },
          fanOut: async function* () {
            runs += 1
            for (const n of [1, 2, 3]) yield n
            throw thrown()
          },
          each: {
            retries: 0,
            run: (_, n) => {
              if (n === failing) throw new Error('It broke.')
              return n
            },
          },
        },
      ],
    }),
  }
}

test('a producer that throws after its last item leaves the end to the items, and its error to the timeline', async ({
  open,
}) => {
  const { job, runs } = torn('torn')
  const hf = await open({ jobs: [job] })
  await hf.work()
  const handle = await hf.submit(job, null)
  const error = { code: 'handler_failed', message: 'The source went away.' }
  expect(await handle.result()).toMatchObject({
    state: 'partial',
    output: { total: 3, succeeded: 3, failed: 0, error },
  })
  // it had its retries first, and added no item twice
  expect(runs()).toBe(2)
  expect(await hf.items(handle.id)).toHaveLength(3)
  const told = (await hf.timeline(handle.id)).filter(({ type }) => type === 'job.fanned_out')
  expect(told).toMatchObject([{ data: { items: 3, error } }])
  expect((await hf.audit()).violations).toEqual([])
})

test('if too many items fail, a job whose producer threw fails by its threshold', async ({ open }) => {
  const { job } = torn('strict', { failing: 2 })
  const hf = await open({ jobs: [job] })
  await hf.work()
  const handle = await hf.submit(job, null)
  await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  expect((await hf.get(handle.id))?.error).toMatchObject({ code: 'items_failed' })
})

test('a producer that throws a permanent error, or gives nothing before it throws, fails its job', async ({ open }) => {
  const permanent = torn('permanent', { thrown: () => new PermanentError('The whole is in vain.') }).job
  const nothing = defineJob('nothing', {
    stages: [
      {
        name: 'all',
        retries: 0,
        // biome-ignore lint/correctness/useYield: it comes to none
        fanOut: function* (): Generator<number> {
          throw new Error('There is no source.')
        },
        each: () => {},
      },
    ],
  })
  const hf = await open({ jobs: [permanent, nothing] })
  await hf.work()
  for (const job of [permanent, nothing]) {
    const handle = await hf.submit(job, null)
    await expect(handle.result()).rejects.toMatchObject({ code: 'job_failed' })
  }
})

test('a redo runs a producer that had given up again, and adds what is missing', async ({ open }) => {
  let isWhole = false
  let items = 0
  const source = defineJob('source', {
    stages: [
      {
        name: 'all',
        retries: 0,
        fanOut: function* () {
          for (const n of [1, 2, 3]) yield n
          if (!isWhole) throw new Error('The source went away.')
          for (const n of [4, 5]) yield n
        },
        each: () => {
          items += 1
        },
      },
    ],
  })
  const hf = await open({ jobs: [source] })
  await hf.work()
  const handle = await hf.submit(source, null)
  expect(await handle.result()).toMatchObject({ state: 'partial' })
  isWhole = true
  await hf.redo(handle.id)
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: { total: 5, succeeded: 5 } })
  expect(items).toBe(5)
  expect((await hf.audit()).violations).toEqual([])
})
