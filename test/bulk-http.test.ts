import { expect, test, until } from './http/door.ts'

test('a key of a tenant previews, changes, sees and stops only what is its own', async ({ open, serve, given }) => {
  const hf = await open()
  const { as } = await serve(hf, { needsKey: true })
  const mine = await as('mine', 'operate', 'read')
  const theirs = await as('theirs', 'operate', 'read')
  const all = await as(null, 'operate', 'read')
  const [own, other] = [await given.queued({ tenant: 'mine' }), await given.queued({ tenant: 'theirs' })]
  const failed = await given.finished('failed', { tenant: 'theirs' })
  const body = { operation: 'cancel' as const, filter: { kind: 'sample' } }
  expect((await mine.previewBulk({ body })).data).toMatchObject({
    count: 1,
    isAtLeast: false,
    sample: [{ id: own.id }],
  })
  expect((await all.previewBulk({ body })).data).toMatchObject({ count: 2 })
  const { data: started } = await mine.startBulk({ body: { ...body, reason: 'wrong input' } })
  const path = { id: String(started?.id) }
  expect(started).toMatchObject({ tenant: 'mine', expected: 1, holder: null, askedBy: expect.stringMatching(/^key /) })
  await hf.reap()
  await until(async () => (await mine.getBulk({ path })).data?.state === 'finished', 'it is finished')
  expect(await hf.state(own.id)).toBe('cancelled')
  expect(await hf.state(other.id)).toBe('queued')
  expect((await mine.getBulk({ path })).data).toMatchObject({ done: 1, skipped: 0, reason: 'wrong input' })
  expect((await mine.listBulkSkipped({ path })).data).toEqual({ skipped: [], next: null })
  const unknown = { code: 'bulk_not_found' }
  await expect(theirs.getBulk({ path })).rejects.toMatchObject(unknown)
  await expect(theirs.stopBulk({ path })).rejects.toMatchObject(unknown)
  await expect(theirs.listBulkSkipped({ path })).rejects.toMatchObject(unknown)
  await expect(mine.stopBulk({ path })).rejects.toMatchObject({ code: 'bulk_ended' })
  expect((await mine.listBulk({})).data?.operations).toHaveLength(1)
  expect((await theirs.listBulk({})).data?.operations).toEqual([])
  expect((await all.listBulk({})).data?.operations[0]).toMatchObject({ holder: expect.any(String) })
  expect((await mine.listFailures({})).data).toMatchObject({ groups: [], count: 0 })
  expect((await theirs.listFailures({})).data).toMatchObject({ groups: [{ count: 1, latest: { id: failed.id } }] })
  const asTheirs = { ...body, filter: { ...body.filter, tenant: 'theirs' } }
  await expect(mine.startBulk({ body: asTheirs })).rejects.toMatchObject({ code: 'tenant_forbidden' })
})

test('a bulk operation needs the scope operate, and bad filters get a clear answer', async ({ open, serve, given }) => {
  const hf = await open()
  const { as } = await serve(hf, { needsKey: true })
  await given.queued()
  const reader = await as(null, 'read', 'submit')
  const body = { operation: 'cancel' as const, filter: { kind: 'sample' } }
  expect((await reader.previewBulk({ body })).data).toMatchObject({ count: 1 })
  await expect(reader.startBulk({ body })).rejects.toMatchObject({ code: 'scope_missing' })
  const operator = await as(null, 'operate')
  const refused = (filter: object, code: string) =>
    expect(operator.startBulk({ body: { operation: 'cancel', filter } })).rejects.toMatchObject({ code })
  await refused({}, 'option_invalid')
  await refused({ kind: 'nothing' }, 'bulk_matches_nothing')
  await refused({ kidn: 'sample' }, 'request_invalid')
  await refused({ kind: 'sample', error: 'timeout' }, 'option_invalid')
  expect(await hf.bulk.list()).toEqual([])
})

test('a tenant may have 20 operations running at once', async ({ open, given }) => {
  const hf = await open()
  await given.queued({ tenant: 'mine' })
  const start = (tenant: string) => hf.bulk.start({ operation: 'cancel', filter: { kind: 'sample', tenant } })
  for (let n = 0; n < 20; n++) await start('mine')
  await expect(start('mine')).rejects.toMatchObject({ code: 'bulk_limit' })
  await given.queued({ tenant: 'theirs' })
  await start('theirs')
})

test('a queue is resumed with who and why in the log', async ({ open, serve }) => {
  const hf = await open()
  const { client } = await serve(hf)
  await client.pauseQueue({ path: { name: 'imports' }, body: { by: 'ada', reason: 'the API is down' } })
  await client.resumeQueue({ path: { name: 'imports' }, body: { by: 'ada', reason: 'the API is back' } })
  const { events } = await hf.events.page({ types: 'queue.*' })
  expect(events.map(({ type, data }) => ({ type, data }))).toEqual([
    { type: 'queue.paused', data: { queue: 'imports', by: 'ada', reason: 'the API is down' } },
    { type: 'queue.resumed', data: { queue: 'imports', by: 'ada', reason: 'the API is back' } },
  ])
  expect(await hf.queues()).toMatchObject([{ name: 'imports', isPaused: false, pauseReason: null }])
})
