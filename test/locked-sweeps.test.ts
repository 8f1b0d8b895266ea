import { currentLeader } from '#holdfast/leader/leader.sql'
import { makeDuties } from '#holdfast/reaper/duties'
import { swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'
import { expire, plain, sweepOwned } from './owned.ts'

const dutyOf = (name: string) => makeDuties().filter((duty) => duty.name === name)

test('jobs that a stranger holds, however many, keep no sweep from reviving others, and their crashes are taken back later', async ({
  given,
  store,
  pool,
  query,
}) => {
  const { sessionId: silent, queue } = await given.crowdOfDeadSession('sample', 150)
  await sweepOf(store, makeDuties())
  await query('update holdfast.session set came_back_at = now() where id = $1', [silent])
  const sessionId = await given.session()
  for (let count = 0; count < 30; count++) await given.claim({ sessionId, queue })
  const blamed = () => query('select from holdfast.job_status where crashes > 0')
  expect(await blamed()).toHaveLength(150)
  const releases = [
    await strangerHolds(pool, 'select from holdfast.ready for update'),
    await strangerHolds(pool, 'select from holdfast.lease for update'),
  ]
  const dead = await given.attemptOfDeadSession()
  const swept = await sweepOf(store, makeDuties())
  expect(swept.revived.map(({ id }) => id)).toEqual([dead.id])
  expect(swept.sweep.sweepMs).toBeLessThan(3_000)
  for (const release of releases) await release()
  await sweepOf(store, dutyOf('clearReturned'))
  expect(await blamed()).toHaveLength(1)
}, 120_000)

test('expired barriers that a stranger holds do not hold up a sweep, and are closed when they are free', async ({
  hf,
  store,
  pool,
  query,
}) => {
  const ids = Array.from({ length: 60 }, (_, index) => `barrier ${index}`)
  await Promise.all(ids.map((id) => hf.barrier.open({ id, ...plain, expires: 3_600_000 })))
  for (const id of ids) await expire(query, id)
  const release = await strangerHolds(pool, 'select from holdfast.owned_barrier for update')
  const held = await sweepOwned(store, dutyOf('expireUnowned'))
  expect(held.healed).toEqual([])
  expect(held.sweep.sweepMs).toBeLessThan(3_000)
  await release()
  expect((await sweepOwned(store, dutyOf('expireUnowned'))).healed).toHaveLength(60)
}, 60_000)

test('a handler that hangs is revived although a stranger holds the row of the leader, and that time is no outage', async ({
  given,
  open,
  store,
  pool,
  query,
}) => {
  const { id } = await given.running()
  const hf = await open({ ...swift, leaderLeaseMs: 1_500, leaderRenewMs: 500 })
  const reaping = await hf.reap()
  await until(() => reaping.term(), 'it leads')
  const release = await strangerHolds(pool, 'select from holdfast.leader for update')
  const isLed = async () => (await store.run(currentLeader, {}))[0]?.is_current === true
  await until(async () => !(await isLed()), 'the lease is over')
  await query('update holdfast.lease set deadline_at = now()')
  await until(async () => (await hf.get(id))?.state === 'queued', 'the job is revived')
  await release()
  await until(isLed, 'the lead is taken')
  expect(await query('select vacant_ms, steady_since::text from holdfast.leader')).toEqual([
    { vacant_ms: 0, steady_since: '-infinity' },
  ])
}, 60_000)

test('outcomes that could not be written because the leases were locked have time to arrive before their jobs count as hung', async ({
  given,
  store,
  pool,
  query,
}) => {
  const { id } = await given.running()
  await query('update holdfast.lease set deadline_at = now()')
  const duties = makeDuties()
  const release = await strangerHolds(pool, 'lock table holdfast.lease in share mode')
  const sweep = sweepOf(store, duties)
  const isLongHeld = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
    and query_start < clock_timestamp() - interval '1.1 s'`
  await until(async () => (await query(isLongHeld)).length > 0, 'the sweep waits for the table')
  await release()
  expect((await sweep).revived).toEqual([])
  expect((await sweepOf(store, duties)).revived).toEqual([])
  await until(
    async () => (await sweepOf(store, duties)).revived.some((revived) => revived.id === id),
    'it is revived if no outcome comes',
  )
}, 60_000)
