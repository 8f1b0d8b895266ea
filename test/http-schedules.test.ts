import { defineJob } from 'holdfast'
import { expect, problem, test } from './http/door.ts'

const report = defineJob('report', { run: () => {} })

test('schedules are set, shown, changed and removed over HTTP', async ({ open, serve }) => {
  const hf = await open({ jobs: [report] })
  const { client } = await serve(hf, { jobs: [report] })
  const { data: set } = await client.setSchedule({
    body: { name: 'nightly', kind: 'report', input: { day: 1 }, cron: '0 3 * * *', tz: 'Europe/Berlin' },
  })
  expect(set).toMatchObject({ name: 'nightly', tenant: 'default', state: 'active', input: { day: 1 } })
  const named = { path: { name: 'nightly' } }
  expect((await client.previewSchedule({ ...named, query: { count: 3 } })).data.slots).toHaveLength(3)
  expect((await client.pauseSchedule({ ...named, body: { reason: 'a holiday' } })).data).toMatchObject({
    pauseReason: 'a holiday',
  })
  expect((await client.resumeSchedule(named)).data).toMatchObject({ state: 'active' })
  const {
    data: { job },
  } = await client.triggerSchedule(named)
  expect((await client.listSlots(named)).data.slots).toMatchObject([{ what: 'triggered', job }])
  const range = { from: '2026-03-01T00:00:00Z', to: '2026-03-04T00:00:00Z' }
  expect((await client.backfillSchedule({ ...named, body: range })).data).toEqual({ submitted: 3, existing: 0 })
  const { data: first } = await client.listSlots({ ...named, query: { limit: 2 } })
  const { data: rest } = await client.listSlots({ ...named, query: { limit: 10, cursor: first.next as string } })
  expect([...first.slots, ...rest.slots]).toHaveLength(4)
  expect((await client.listSchedules({})).data.schedules).toHaveLength(1)
  await client.removeSchedule(named)
  expect((await client.listSchedules({})).data.schedules).toEqual([])
})

test('a tenant sees and changes its own schedules only, with the scope for it', async ({ open, serve }) => {
  const hf = await open({ jobs: [report] })
  const served = await serve(hf, { jobs: [report], needsKey: true })
  const [ours, theirs] = [await served.as('ours', 'read', 'operate'), await served.as('theirs', 'read', 'operate')]
  await ours.setSchedule({ body: { name: 'same', kind: 'report', every: '1h' } })
  expect((await theirs.listSchedules({})).data.schedules).toEqual([])
  await expect(theirs.getSchedule({ path: { name: 'same' } })).rejects.toMatchObject({ code: 'schedule_not_found' })
  await expect(theirs.removeSchedule({ path: { name: 'same' } })).rejects.toMatchObject({ code: 'schedule_not_found' })
  await expect(theirs.getSchedule({ path: { name: 'same' }, query: { tenant: 'ours' } })).rejects.toMatchObject({
    code: 'tenant_forbidden',
  })
  const reader = await served.as('ours', 'read')
  expect((await reader.getSchedule({ path: { name: 'same' } })).data).toMatchObject({ tenant: 'ours' })
  await expect(reader.pauseSchedule({ path: { name: 'same' }, body: {} })).rejects.toMatchObject({
    code: 'scope_missing',
  })
})

test('bad schedules are refused over HTTP with a status and what to do', async ({ open, serve }) => {
  const hf = await open({ jobs: [report] })
  const { post } = await serve(hf, { jobs: [report] })
  const refused: [object, number, string][] = [
    [{ cron: 'nonsense' }, 422, 'schedule_invalid'],
    [{ cron: '0 3 * * *', tz: 'Mars/Base' }, 422, 'schedule_invalid'],
    [{ every: '1h', overlap: 'queue' }, 422, 'request_invalid'],
    [{ every: '1h', kind: 'reprot' }, 404, 'unknown_kind'],
  ]
  for (const [given, status, code] of refused) {
    const response = await post('/v1/schedules', { name: 'bad', kind: 'report', ...given })
    expect([response.status, (await problem(response)).code]).toEqual([status, code])
  }
  expect(await hf.schedules.list()).toEqual([])
})
