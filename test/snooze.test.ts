import { setTimeout as sleep } from 'node:timers/promises'
import { AttemptSnoozed, defineJob } from 'holdfast'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'

const typesOf = (events: { type: string }[]) => events.map(({ type }) => type)

test('a handler that snoozes runs again later from its start, at no cost of a retry', async ({ open }) => {
  const attempts: number[] = []
  const poll = defineJob('poll', {
    retries: 0,
    run: ({ attempt, snooze }) => {
      attempts.push(attempt)
      if (attempt < 4) snooze(50)
      return attempt
    },
  })
  const hf = await open({ jobs: [poll] })
  await hf.work()
  const handle = await hf.submit(poll, null)
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: 4 })
  expect(attempts).toEqual([1, 2, 3, 4])
  expect(await hf.get(handle.id)).toMatchObject({ failures: 0, crashes: 0 })
  const timeline = await hf.timeline(handle.id)
  expect(typesOf(timeline)).toEqual(['job.submitted', 'job.snoozed', 'job.snoozed', 'job.snoozed', 'job.finished'])
  expect(timeline[1]?.data).toMatchObject({ runAt: expect.any(String) })
  expect((await hf.audit()).violations).toEqual([])
})

test('a job that snoozes holds no worker, and is due by the clock of the database', async ({ open, query }) => {
  const nap = defineJob('nap', { run: ({ attempt, sleep }) => (attempt === 1 ? sleep(3_600_000) : 'awake') })
  const other = defineJob('other', { run: () => 'done' })
  const hf = await open({ jobs: [nap, other], concurrency: 1 })
  await hf.work()
  const { id } = await hf.submit(nap, null)
  await until(async () => (await hf.get(id))?.state === 'queued' && (await hf.get(id))?.attempt === 1, 'it snoozes')
  const [row] = await query<{ ms: number }>(
    `select extract(epoch from run_at - now())::float8 * 1000 as ms from holdfast.ready where job_id = $1`,
    [id],
  )
  expect(row?.ms).toBeGreaterThan(3_500_000)
  expect(row?.ms).toBeLessThanOrEqual(3_600_000)
  expect((await hf.why(id)).verdict).toMatchObject({ code: 'snoozed', sentence: expect.stringMatching(/snoozed/) })
  expect(await (await hf.submit(other, null)).result()).toMatchObject({ output: 'done' })
  await hf.cancel(id)
  expect(await hf.state(id)).toBe('cancelled')
})

test('once a handler has snoozed, what it returns or throws after that is discarded', async ({ open }) => {
  const swallowing = defineJob('swallowing', {
    retries: 0,
    run: (ctx) => {
      if (ctx.attempt === 3) return 'in the end'
      try {
        ctx.snooze(10)
      } catch (error) {
        expect(error).toBeInstanceOf(AttemptSnoozed)
      }
      if (ctx.attempt === 1) return 'too early'
      throw new Error('too early')
    },
  })
  const hf = await open({ jobs: [swallowing] })
  await hf.work()
  expect(await (await hf.submit(swallowing, null)).result()).toMatchObject({ output: 'in the end' })
})

test('a delay that is no delay is an error of the handler', async ({ open }) => {
  const odd = defineJob('odd', { retries: 0, run: ({ input, snooze }) => snooze(input as number) })
  const hf = await open({ jobs: [odd] })
  await hf.work()
  for (const ms of [0, -1, 1e15, 'soon', null]) {
    const handle = await hf.submit(odd, ms as never)
    await expect(handle.result()).rejects.toMatchObject({
      code: 'job_failed',
      details: { error: { code: 'option_invalid', message: expect.stringContaining('snooze(ms) takes milliseconds') } },
    })
  }
})

test('an item and a join snooze like any handler, and count once', async ({ open }) => {
  const runs: string[] = []
  const fan = defineJob('fan', {
    stages: [
      {
        name: 'all',
        fanOut: () => [1, 2],
        each: {
          retries: 0,
          run: (ctx, item) => {
            runs.push(`item ${item}`)
            if (ctx.attempt === 1) ctx.snooze(20)
            return item
          },
        },
        join: (ctx, summary) => {
          runs.push('join')
          if (runs.filter((run) => run === 'join').length === 1) ctx.snooze(20)
          return summary.succeeded
        },
      },
    ],
  })
  const hf = await open({ jobs: [fan] })
  await hf.work()
  expect(await (await hf.submit(fan, null)).result()).toMatchObject({ state: 'succeeded', output: 2 })
  expect(runs.toSorted()).toEqual(['item 1', 'item 1', 'item 2', 'item 2', 'join', 'join'])
  expect((await hf.audit()).violations).toEqual([])
})

test('a handler that snoozes after its job was cancelled changes nothing', async ({ open }) => {
  const started = gate()
  const late = defineJob('late', {
    run: async ({ signal, snooze }) => {
      started.open()
      while (!signal.aborted) await sleep(5)
      snooze(10)
    },
  })
  const hf = await open({ jobs: [late] })
  await hf.work()
  const { id } = await hf.submit(late, null)
  await started.promise
  await hf.cancel(id)
  await until(async () => (await hf.sessions())[0]?.busy === 0, 'the handler has returned')
  expect(typesOf(await hf.timeline(id))).toEqual(['job.submitted', 'job.cancelled'])
})

test('a snooze survives the death of the worker that gave the job back', async ({ url, hf }) => {
  const first = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.snoozy, null)
  const waiting = await until(async () => {
    const job = await hf.get(id)
    return job?.state === 'queued' && job.attempt === 1 && job
  }, 'the first attempt is given back')
  await first.kill('SIGKILL')
  const second = await startMember({ url, settings: swift })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'it runs again')
  const job = await hf.get(id)
  expect(job).toMatchObject({ attempt: 2, failures: 0, crashes: 0, outputs: { run: { by: second.pid } } })
  expect(job?.finishedAt?.getTime()).toBeGreaterThanOrEqual(waiting.runAt?.getTime() as number)
})

test('a remote worker snoozes an attempt, and a repeated request gets the same answer', async ({ hf }) => {
  const extract = defineJob('extract', { run: () => {} })
  const handle = await hf.submit(extract, null)
  const session = await hf.remote.open({ kinds: [{ name: 'extract' }] })
  const [attempt] = await hf.remote.claim(session.id)
  const mine = { id: handle.id, attempt: attempt?.attempt as number }
  for (const delayMs of [0, -5, 'later', undefined])
    await expect(
      hf.remote.settle(session.id, [{ ...mine, outcome: 'snoozed', delayMs: delayMs as never }]),
    ).rejects.toMatchObject({ code: 'option_invalid' })
  const snoozed = { ...mine, outcome: 'snoozed' as const, delayMs: 50 }
  expect(await hf.remote.settle(session.id, [snoozed])).toEqual(['settled'])
  expect(await hf.remote.settle(session.id, [snoozed])).toEqual(['settled'])
  const [again] = await hf.remote.claim(session.id, { waitMs: 5_000 })
  expect(again).toMatchObject({ id: handle.id, attempt: 2, failures: 0 })
  expect(await hf.remote.settle(session.id, [{ ...mine, attempt: 2, outcome: 'succeeded' }])).toEqual(['settled'])
})
