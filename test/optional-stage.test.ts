import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { expect, test, until } from './http/door.ts'

test('an optional stage that spends its crash budget leaves the job partial, with the earlier output as its result', async ({
  url,
  open,
  serve,
}) => {
  const hf = await open(swift)
  const { client } = await serve(hf)
  const handle = await hf.submit(kinds.refined, null)
  const worker = await startMember({ url, supervisor: 'the boss', kinds: ['refined'], settings: swift })
  await until(() => worker.started().length === 1, 'the optional stage runs')
  worker.order({ open: 'kill' })
  await worker.exited
  await hf.reclaim({ supervisor: 'the boss', pid: worker.pid })
  await until(async () => (await hf.get(handle.id))?.finishedAt, 'the job ends')
  expect(await hf.get(handle.id)).toMatchObject({ state: 'partial', crashes: 1, error: { code: 'quarantined' } })
  expect((await hf.timeline(handle.id)).at(-1)).toMatchObject({ type: 'job.quarantined' })
  expect(await handle.result()).toMatchObject({ state: 'partial', outputs: { draft: 'a draft' } })
  expect(await client.getResult({ path: { id: handle.id } })).toMatchObject({
    status: 200,
    data: { state: 'partial', isPartial: true, outputs: { draft: 'a draft' }, error: { code: 'quarantined' } },
  })
  expect((await hf.audit()).violations).toEqual([])
})
