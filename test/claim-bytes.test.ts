import { defineJob } from 'holdfast'
import { expect, gate, test, until } from './fixtures.ts'

const mebibyte = 1024 * 1024
const mostBytes = 16 * mebibyte
const large = 'x'.repeat(mebibyte - 2)

/** The size of the inputs and earlier outputs that workers hold, lease by lease. */
const heldBytes = `
  select sum(coalesce(octet_length(payload.input::text), 0) + coalesce(output.bytes, 0))::float8 as bytes, count(*)::int as jobs
  from holdfast.running
  left join holdfast.job_payload as payload on payload.job_id = running.job_id
  left join lateral (
    select sum(octet_length(output::text)) as bytes from holdfast.stage_output where stage_output.job_id = running.job_id
  ) as output on true`

type Held = { bytes: number; jobs: number }

test('one claim takes no more than claimMaxBytes of inputs, however many handlers are free', async ({
  open,
  query,
}) => {
  const end = gate<void>()
  let started = 0
  const page = defineJob('page', {
    run: async () => {
      started += 1
      await end.promise
    },
  })
  const hf = await open({ jobs: [page], concurrency: 200 })
  await hf.submitMany(
    page,
    Array.from({ length: 200 }, () => ({ input: large })),
  )
  await hf.work()
  await until(() => started === 200, 'all are started', 60_000)
  const leases = await query<Held>(`${heldBytes} group by running.lease_id`)
  expect(Math.max(...leases.map(({ bytes }) => bytes))).toBe(mostBytes)
  expect(leases.reduce((sum, { jobs }) => sum + jobs, 0)).toBe(200)
  end.open()
})

test('a worker that claims ahead holds no more than claimMaxBytes of inputs that wait', async ({ open, query }) => {
  const seen: number[] = []
  const page = defineJob('page', {
    run: async ({ input }: { input: unknown }) => {
      if (input !== large) return
      const [held] = await query<Held>(heldBytes)
      seen.push((held as Held).bytes)
    },
  })
  const hf = await open({ jobs: [page], concurrency: 1, holdMs: 60_000 })
  // quick jobs first, so that the worker claims hundreds ahead
  await hf.submitMany(
    page,
    Array.from({ length: 5_000 }, () => ({ input: 1 })),
  )
  await hf.submitMany(
    page,
    Array.from({ length: 200 }, () => ({ input: large })),
  )
  await hf.work()
  await until(() => seen.length === 200, 'all have run', 60_000)
  expect(Math.max(...seen)).toBeGreaterThan(2 * mebibyte)
  // those that wait, the one that runs, and the few whose outcome is being written
  expect(Math.max(...seen)).toBeLessThanOrEqual(mostBytes + 8 * mebibyte)
})

test('outputs of earlier stages count towards claimMaxBytes', async ({ open, query }) => {
  const end = gate<void>()
  let started = 0
  const report = defineJob('report', {
    stages: [
      { name: 'read', run: () => large },
      {
        name: 'write',
        run: async ({ outputs }) => {
          if (outputs.read !== large) throw new Error('Not what the first stage returned.')
          started += 1
          await end.promise
        },
      },
    ],
  })
  const hf = await open({ jobs: [report], concurrency: 40, claimMaxBytes: 4 * mebibyte })
  await hf.submitMany(
    report,
    Array.from({ length: 40 }, () => ({ input: 1 })),
  )
  await hf.work()
  await until(() => started === 40, 'all are started', 60_000)
  const leases = await query<Held>(`${heldBytes} group by running.lease_id`)
  expect(Math.max(...leases.map(({ bytes }) => bytes))).toBeLessThanOrEqual(4 * mebibyte)
  end.open()
})

test('a job larger than claimMaxBytes is claimed alone, and jobs keep their order', async ({ given, query }) => {
  const queue = 'sizes'
  const sizes = [10, 2_000, 10, 5_000, 600, 10]
  for (const size of sizes) await given.queued({ queue, input: 'x'.repeat(size) })
  const sessionId = await given.session()
  const claim = async () =>
    (await given.claim({ sessionId, queue, most: 10, mostBytes: 3_000 })).map(({ input }) => (input?.length ?? 0) - 2)
  expect(await claim()).toEqual([10, 2_000, 10])
  expect(await claim()).toEqual([5_000])
  expect(await claim()).toEqual([600, 10])
  expect(await query('select from holdfast.ready')).toEqual([])
})
