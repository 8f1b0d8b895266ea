import type pg from 'pg'
import { ClientPool } from '#holdfast/postgres/client-pool'
import { startMember } from './crash/member.ts'
import { expect, test, until } from './fixtures.ts'
import { queuedCrowd } from './places.ts'

const held = `select from pg_stat_activity where datname = current_database() and application_name = 'holdfast'`

test('an idle worker that leads comes down to three connections, and goes on from there', async ({
  url,
  query,
  pool,
}) => {
  const settings = { logLevel: 'silent', sweepMs: 1_000, leaderRenewMs: 1_000, leaderLeaseMs: 10_000 }
  const worker = await startMember({ url, kinds: ['hold'], settings })
  await until(
    async () => (await query('select from holdfast.leader where lease_until > now()')).length === 1,
    'it leads',
  )
  // one for its heartbeat, one that listens, one for all the rest; what its start took is given up after ten seconds
  const ledAtMs = performance.now()
  const isDown = async () => (await query(held)).length === 3 && performance.now() - ledAtMs > 12_000
  // where statements take long because the machine is busy, one more is made now and then, and has its ten seconds
  await until(isDown, 'three connections are left', 240_000)
  const { rows } = await pool.query(`${queuedCrowd({ count: 1, kind: `'hold'` })} returning job_id`)
  await worker.runs(rows[0].job_id)
}, 270_000)

/** A lender over a pool that has one connection, which is lent already. */
async function lentOut(pool: pg.Pool): Promise<{ clientPool: ClientPool; first: pg.PoolClient }> {
  const clientPool = new ClientPool(pool, 4)
  return { clientPool, first: await clientPool.take() }
}

test('statements that meet share a connection, in the order in which they came', async ({ pool }) => {
  const { clientPool, first } = await lentOut(pool)
  const served: number[] = []
  const four = [1, 2, 3, 4].map(async (place) => {
    const client = await clientPool.take()
    served.push(place)
    clientPool.giveBack(client, false)
    return client
  })
  clientPool.giveBack(first, false)
  expect((await Promise.all(four)).every((client) => client === first)).toBe(true)
  expect(served).toEqual([1, 2, 3, 4])
  expect(pool.totalCount).toBe(1)
})

test('a statement that waits longer than a few others take gets a connection of its own', async ({ pool }) => {
  const { clientPool, first } = await lentOut(pool)
  const second = await clientPool.take()
  expect(second === first).toBe(false)
  expect(pool.totalCount).toBe(2)
  for (const client of [first, second]) clientPool.giveBack(client, false)
})

test('a process that is always busy does not share one connection for ever', async ({ pool }) => {
  const { clientPool, first } = await lentOut(pool)
  let client = first
  // each wait ends before its patience does; together they are longer than an idle process ever waits
  for (let turns = 0; turns < 500 && pool.totalCount === 1; turns++) {
    const next = clientPool.take()
    await client.query('select pg_sleep(0.02)')
    clientPool.giveBack(client, false)
    client = await next
  }
  clientPool.giveBack(client, false)
  expect(pool.totalCount).toBe(2)
})
