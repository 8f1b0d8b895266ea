import { defineJob } from 'holdfast'
import { memberKinds as kinds, startMember } from './crash/member.ts'
import { expect, gate, quick, test } from './fixtures.ts'

test('a worker process that gets SIGTERM lets its jobs finish, and claims no more', async ({ url, hf, query }) => {
  const worker = await startMember({ url, settings: { ...quick, drainMs: 20_000 } })
  const running = await hf.submit(kinds.hold, null)
  await worker.runs(running.id)
  await worker.kill('SIGTERM')
  await worker.heard('it is asked to stop', ({ stopping }) => stopping === true)
  worker.order({ open: 'all' })
  expect(await worker.exited).toMatchObject({ code: 0 })
  expect(await hf.get(running.id)).toMatchObject({ state: 'succeeded', attempt: 1 })
  expect(await query('select ended_by from holdfast.session')).toEqual([{ ended_by: 'itself' }])
})

test('a job that does not finish within the grace is told to stop and given back, at no cost', async ({ url, hf }) => {
  const worker = await startMember({ url, settings: { ...quick, drainMs: 100 } })
  const jobs = [await hf.submit(kinds.hold, null), await hf.submit(kinds.stubborn, null)]
  for (const { id } of jobs) await worker.runs(id)
  await worker.kill('SIGTERM')
  expect(await worker.exited).toMatchObject({ code: 0 })
  const aborted = expect.objectContaining({ id: jobs[0]?.id, reason: 'shutdown' })
  expect(worker.lines).toContainEqual({ aborted })
  for (const { id } of jobs) {
    expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1, failures: 0, crashes: 0, sessionId: null })
    expect((await hf.timeline(id)).map(({ type }) => type)).toEqual(['job.submitted', 'job.released'])
  }
})

test('what a handler returns after its job was given back changes nothing', async ({ open }) => {
  const started = gate()
  const finish = gate<string>()
  const late = defineJob('late', {
    run: () => {
      started.open()
      return finish.promise
    },
  })
  const hf = await open({ jobs: [late], drainMs: 0 })
  const working = await hf.work()
  const { id } = await hf.submit(late, null)
  await started.promise
  await working.stop()
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1 })
  finish.open('too late')
  await finish.promise
  expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1, outputs: {} })
})

test('closing twice is as good as once, and nothing works afterwards', async ({ open }) => {
  const hf = await open({ jobs: [kinds.hold] })
  await hf.work()
  await Promise.all([hf.close(), hf.close()])
  await hf.close()
  await expect(hf.submit(kinds.hold, null)).rejects.toThrow()
})
