import type pg from 'pg'
import { type Lender, makeLender } from '#holdfast/store/lend'
import { expect, test, until } from './fixtures.ts'
import { startWorker } from './processes/worker.ts'
import { queuedCrowd } from './places.ts'

const held = `select from pg_stat_activity where datname = current_database() and application_name = 'holdfast'`

test('an idle worker that leads comes down to three connections, and goes on from there', async ({
  url,
  query,
  pool,
}) => {
  const worker = await startWorker({
    url,
    logLevel: 'silent',
    sweepMs: 1_000,
    leaderRenewMs: 1_000,
    leaderLeaseMs: 10_000,
  })
  await until(
    async () => (await query('select from holdfast.leader where lease_until > now()')).length === 1,
    'it leads',
  )
  // one for its heartbeat, one that listens, one for all the rest; what its start took is given up after ten seconds
  const ledAtMs = performance.now()
  const isDown = async () => (await query(held)).length === 3 && performance.now() - ledAtMs > 12_000
  await until(isDown, 'three connections are left', 70_000)
  const { rows } = await pool.query(`${queuedCrowd({ count: 1, kind: `'patient'` })} returning job_id`)
  await worker.told(({ started }) => started === rows[0].job_id)
}, 90_000)

/** A lender over a pool that has one connection, which is lent already. */
async function lentOut(pool: pg.Pool): Promise<{ lender: Lender; first: pg.PoolClient }> {
  const lender = makeLender(pool, 4)
  return { lender, first: await lender.take() }
}

test('statements that meet share a connection, in the order in which they came', async ({ pool }) => {
  const { lender, first } = await lentOut(pool)
  const served: number[] = []
  const four = [1, 2, 3, 4].map(async (place) => {
    const client = await lender.take()
    served.push(place)
    lender.giveBack(client, false)
    return client
  })
  lender.giveBack(first, false)
  expect((await Promise.all(four)).every((client) => client === first)).toBe(true)
  expect(served).toEqual([1, 2, 3, 4])
  expect(pool.totalCount).toBe(1)
})

test('a statement that waits longer than a few others take gets a connection of its own', async ({ pool }) => {
  const { lender, first } = await lentOut(pool)
  const second = await lender.take()
  expect(second === first).toBe(false)
  expect(pool.totalCount).toBe(2)
  for (const client of [first, second]) lender.giveBack(client, false)
})

test('a process that is always busy does not share one connection for ever', async ({ pool }) => {
  const { lender, first } = await lentOut(pool)
  let client = first
  // each wait ends before its patience does; together they are longer than an idle process ever waits
  for (let turns = 0; turns < 500 && pool.totalCount === 1; turns++) {
    const next = lender.take()
    await client.query('select pg_sleep(0.02)')
    lender.giveBack(client, false)
    client = await next
  }
  lender.giveBack(client, false)
  expect(pool.totalCount).toBe(2)
})
