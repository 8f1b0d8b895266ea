import { duties, makeDuties } from '#holdfast/reaper/duties'
import type { Duty } from '#holdfast/reaper/duty'
import { waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'

const items = 12_000
// each statement has a time of its own
const cancelled = `select count(*)::int as n, count(distinct finished_at)::int as statements from holdfast.job_status where state = 'cancelled'`
const isCancelled = `select from holdfast.job_status where state = 'cancelled'`
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

/** Makes the end of each item take this long. */
const slow = (ms: number) => `
  create function holdfast.slow_for_test() returns trigger language plpgsql as $$
  begin perform pg_sleep(${ms / 1000}); return new; end $$;
  create trigger slow_for_test before insert on holdfast.outcome for each row execute function holdfast.slow_for_test()`

test('a fan-out is stopped on a server that cancels only a few items per second', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await waiting({ given, store }, { items: 1_200, expiresMs: 60_000 })
  await query(`update holdfast.barrier set opened_at = now() - interval '2 min', expires_at = now()`)
  await query(slow(2))
  await until(async () => {
    await sweepOf(store)
    return (await query(isCancelled)).length > 0
  }, 'some items are cancelled')
  await query('drop trigger slow_for_test on holdfast.outcome')
  await until(async () => {
    await sweepOf(store)
    return (await hf.get(made.parent.id))?.state === 'queued'
  }, 'the rest is cancelled and the join fires')
  expect((await hf.audit()).violations).toEqual([])
}, 60_000)

test('fan-outs that are slow to stop, however many, are stopped in turn, about a second per run', async ({
  given,
  store,
  query,
}) => {
  for (let count = 0; count < 5; count++) await waiting({ given, store }, { items: 200, expiresMs: 60_000 })
  await query(`update holdfast.barrier set opened_at = now() - interval '2 min', expires_at = now()`)
  await query(slow(2))
  const sizes: number[] = []
  const stopUnstopped = makeDuties().find(({ name }) => name === 'stopUnstopped') as Duty
  await sweepOf(
    store,
    duties.filter(({ name }) => name === 'expireBarriers'),
  )
  while (sizes.length === 0 || (await query(isLive)).length > 5)
    sizes.push((await stopUnstopped.run(store)).healed.length)
  expect(Math.max(...sizes)).toBeLessThan(5)
}, 60_000)
