import { defineJob } from 'holdfast'
import { call } from './cli/command.ts'
import { expect, problem, test, until } from './http/door.ts'

const approval = defineJob('approval', {
  stages: [
    { name: 'approve', wait: { signal: 'approved', timeoutMs: 600_000 } },
    { name: 'publish', run: ({ outputs }) => outputs.approve },
  ],
})

test('signals and unique jobs work over HTTP with the generated client', async ({ open, serve }) => {
  const hf = await open({ jobs: [approval] })
  const { client, post } = await serve(hf)
  await hf.work()
  const unique = { key: 'u-1' }
  const first = await client.submitJob({ body: { kind: 'approval', unique } })
  expect(first.data).toMatchObject({ outcome: 'submitted' })
  const id = first.data?.id as string
  const again = await client.submitJob({ body: { kind: 'approval', unique, onConflict: 'keep' } })
  expect(again.data).toMatchObject({ id, outcome: 'kept' })
  const plain = await client.submitJob({ body: { kind: 'approval' } })
  expect(plain.data).not.toHaveProperty('outcome')
  const path = { id, name: 'approved' }
  await until(async () => (await hf.why(id)).verdict.code === 'waits-for-signal', 'it waits')
  expect((await client.signalJob({ path, body: { payload: { by: 'mia' } } })).data).toEqual({
    isNew: true,
    isAwaited: true,
  })
  expect((await hf.handle(id).result()).state).toBe('succeeded')
  expect(await hf.get(id)).toMatchObject({ outputs: { approve: { by: 'mia' }, publish: { by: 'mia' } } })
  expect(await problem(await post(`/v1/jobs/${id}/signals/approved`, {}))).toMatchObject({ code: 'signal_refused' })
  expect(await problem(await post(`/v1/jobs/${plain.data?.id}/signals/aproved`, {}))).toMatchObject({
    code: 'signal_unknown',
  })
  expect(await problem(await post('/v1/jobs', { kind: 'approval', unique: { key: '' } }))).toMatchObject({
    code: 'request_invalid',
  })
  expect(await problem(await post('/v1/jobs', { kind: 'approval', onConflict: 'keep' }))).toMatchObject({
    code: 'option_invalid',
  })
})

test('signals and unique jobs work from the command line', { timeout: 60_000 }, async ({ open, url }) => {
  const hf = await open({ jobs: [approval] })
  await hf.work()
  const cli = (...words: string[]) => call([...words, '--url', url])
  const first = await cli('submit', 'approval', 'null', '--unique', 'u-1', '--json')
  const { id, outcome } = JSON.parse(first.stdout)
  expect(outcome).toBe('submitted')
  expect((await cli('submit', 'approval', 'null', '--unique', 'u-1')).stderr).toContain(`${id} holds the unique key`)
  const odd = await cli('submit', 'approval', 'null', '--unique', 'u-1', '--on-conflict', 'override')
  expect(odd).toMatchObject({ code: 2, stderr: expect.stringContaining('onConflict must be one of') })
  await until(async () => (await hf.why(id)).verdict.code === 'waits-for-signal', 'it waits')
  expect((await cli('why', id)).stdout).toContain('waits for the signal')
  const sent = await cli('signal', id, 'approved', '{"by":"mia"}', '--json')
  expect(JSON.parse(sent.stdout)).toEqual({ id, signal: 'approved', isNew: true, isAwaited: true })
  await hf.handle(id).result()
  expect(await cli('signal', id, 'approved')).toMatchObject({ code: 1, stderr: expect.stringContaining('has ended') })
})
