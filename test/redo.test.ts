import { defineJob, PermanentError } from 'holdfast'
import { expect, test } from './fixtures.ts'

test('a failed job that is redone waits again, keeps counting its attempts, and starts with a clean slate', async ({
  given,
  hf,
}) => {
  const { id, queue, attempt } = await given.finished('failed')
  await hf.redo(id)
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt, failures: 0, crashes: 0, error: null })
  expect((await hf.timeline(id)).at(-1)?.type).toBe('job.redone')
  expect(await given.claim({ sessionId: await given.session(), queue })).toMatchObject([{ attempt: attempt + 1 }])
})

test('an attempt from before a redo cannot settle the job', async ({ given, hf, query }) => {
  const mine = await given.running()
  await hf.cancel(mine.id)
  await hf.redo(mine.id)
  const [row] = await given.claim({ sessionId: await given.session(), queue: mine.queue })
  expect(row?.attempt).toBe(mine.attempt + 1)
  expect(await query('select attempt, state from holdfast.job_status where finished_at is null')).toEqual([
    { attempt: 2, state: 'running' },
  ])
})

test('of many who redo one job at once, one wins', async ({ given, hf, query }) => {
  const { id } = await given.finished('cancelled')
  const answers = await Promise.allSettled(Array.from({ length: 10 }, () => hf.redo(id)))
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  expect(await query(`select count(*)::int as n from holdfast.job_status where finished_at is null`)).toEqual([
    { n: 1 },
  ])
  expect(await query(`select count(*)::int as n from holdfast.job_status where finished_at is not null`)).toEqual([
    { n: 0 },
  ])
})

const runs: string[] = []
let isBroken = true
const twoStages = defineJob('two-stages', {
  stages: [
    { name: 'extract', run: () => `extract ${runs.push('extract')}` },
    {
      name: 'locate',
      optional: true,
      retries: 0,
      run: ({ outputs }) => {
        runs.push('locate')
        if (isBroken) throw new PermanentError('no map')
        return `${outputs.extract}, located`
      },
    },
  ],
})

test('a partial job is redone from the stage that failed, or from the start, and its outputs follow', async ({
  open,
}) => {
  const hf = await open({ jobs: [twoStages] })
  await hf.work()
  const handle = await hf.submit(twoStages, null)
  expect(await handle.result()).toMatchObject({
    state: 'partial',
    outputs: { extract: 'extract 1' },
    error: { message: 'no map' },
  })
  isBroken = false
  await hf.redo(handle.id)
  expect(await handle.result()).toMatchObject({ state: 'succeeded', output: 'extract 1, located' })
  expect(runs).toEqual(['extract', 'locate', 'locate'])

  isBroken = true
  const again = await hf.submit(twoStages, null)
  await again.result()
  isBroken = false
  await hf.redo(again.id, { from: 'start' })
  expect(await again.result()).toMatchObject({ state: 'succeeded', output: 'extract 6, located' })
})

test('while a job is redone from the start, what it returned before is gone', async ({ given, hf, query }) => {
  const { id, queue } = await given.atSecondStage()
  await hf.cancel(id)
  expect((await hf.get(id))?.outputs).toEqual({ one: 'first' })
  await hf.redo(id, { from: 'start' })
  expect(await hf.get(id)).toMatchObject({ stage: 0, outputs: {} })
  expect(await query('select count(*)::int as n from holdfast.stage_output')).toEqual([{ n: 0 }])
  expect(await given.claim({ sessionId: await given.session(), queue })).toMatchObject([{ stage: 0, outputs: null }])
})
