import { add, claimItems, finish, openFor, seal, waiting } from './barrier/given.ts'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'
import type { Running } from './given.ts'

const expireNow = `update holdfast.barrier set opened_at = now() - interval '2 min', sealed_at = now() - interval '1 min',
  armed_at = now() - interval '1 min', expires_at = now() where job_id = $1`
const heardOf = (when: string) => `update holdfast.session set heartbeat_at = now() ${when} where id = $1`

test('a worker that dies shortly before the expiry of a fan-out does not fail it', { timeout: 60_000 }, async ({
  url,
  hf,
  query,
}) => {
  // its death is known only long after the expiry
  const slow = { ...swift, lostAfterMs: 3_000, leaseMs: 6_000 }
  const first = await startMember({ url, kinds: ['fan'], settings: slow })
  const handle = await hf.submit(kinds.fan, { items: 3 } as never)
  await until(() => first.lines.filter((line) => line.part).length === 3, 'all items run')
  await until(async () => (await hf.get(handle.id))?.state === 'waiting', 'the parent waits')
  await first.kill('SIGKILL')
  await query(expireNow, [handle.id])
  const second = await startMember({ url, kinds: ['fan'], settings: slow })
  for (const gate of ['parts', 'first']) second.order({ open: gate })
  expect(await handle.result({ timeout: 30_000 })).toMatchObject({ state: 'succeeded' })
  expect((await hf.items(handle.id)).map(({ state, attempt }) => [state, attempt])).toEqual(
    Array(3).fill(['succeeded', 2]),
  )
})

test('an expiry waits for a sign of each worker, and stops the fan-out once all have been heard of', async ({
  given,
  store,
  hf,
  query,
}) => {
  const made = await waiting({ given, store }, { items: 2, expiresMs: 60_000 })
  const [item] = (await claimItems({ given }, made)) as [Running]
  await query(expireNow, [made.parent.id])
  await query(heardOf(`- interval '1 s'`), [item.sessionId])
  expect((await sweepOf(store)).healed).toEqual([])
  expect(await query('select from holdfast.barrier where stopped_at is null and extended = 0')).toHaveLength(1)
  await query(heardOf(''), [item.sessionId])
  expect((await sweepOf(store)).healed).toMatchObject([{ orphan: 'barrier-expired' }, { orphan: 'stop-unfinished' }])
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'queued' })
})

test('an expiry waits for the workers of items of items', async ({ given, store, query }) => {
  const outer = await waiting({ given, store }, { items: 1, expiresMs: 60_000 })
  const [parent] = (await claimItems({ given }, outer)) as [Running]
  const barrier = await openFor(store, parent)
  await add(store, { parent, barrier }, 1)
  await seal(store, { parent })
  const [inner] = (await claimItems({ given }, { parent, barrier, items: [] })) as [Running]
  await query(expireNow, [outer.parent.id])
  await query(heardOf(`- interval '1 s'`), [inner.sessionId])
  expect((await sweepOf(store)).healed).toEqual([])
  await query(`update holdfast.session set lease_until = now() - interval '1 s' where id = $1`, [inner.sessionId])
  // its worker is dead: the outer fan-out gets its time once more
  expect((await sweepOf(store)).healed).toMatchObject([{ barrier: outer.barrier.id, orphan: 'barrier-expired' }])
  expect(await query('select from holdfast.barrier where expires_at > now() and stopped_at is null')).toHaveLength(1)
  const again = (await claimItems({ given }, { parent, barrier, items: [] })) as [Running]
  await finish(store, again)
  expect(await query(`select state from holdfast.job_status where id = $1`, [parent.id])).toEqual([{ state: 'queued' }])
})
