import { waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test } from './fixtures.ts'

const items = 12_000
// each statement has a time of its own
const cancelled = `select count(*)::int as n, count(distinct finished_at)::int as statements from holdfast.job_status where state = 'cancelled'`
const isLive = 'select from holdfast.job_status where finished_at is null'

test('a cancel reaches all items of a large fan-out, in statements that are each short', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await waiting({ given, store }, { items })
  await hf.cancel(made.parent.id, { reason: 'enough' })
  expect(await query(cancelled)).toEqual([{ n: items + 1, statements: 3 }])
  expect(await query(isLive)).toEqual([])
  expect((await hf.get(made.items.at(-1) as string))?.error?.message).toBe('enough')
  expect((await hf.audit()).violations).toEqual([])
})

test('a sweep cancels what is left of a large fan-out, in statements that are each short, and its join fires once', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await waiting({ given, store }, { items, expiresMs: 60_000 })
  await query(`update holdfast.barrier set opened_at = now() - interval '2 min', expires_at = now()`)
  const { healed, problems } = await sweepOf(store)
  expect(problems).toEqual([])
  expect(healed.map(({ orphan }) => orphan)).toEqual(['barrier-expired', ...Array(3).fill('stop-unfinished')])
  expect(await query(cancelled)).toEqual([{ n: items, statements: 3 }])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
  expect(await query(`select from holdfast.event where type = 'job.joined'`)).toHaveLength(1)
})
