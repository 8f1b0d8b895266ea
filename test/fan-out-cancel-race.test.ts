import pg from 'pg'
import { failJobs } from '#holdfast/settle/settle.sql'
import { runnerIn } from '#holdfast/store/store'
import { cancelJobs } from '#holdfast/submit/submit.sql'
import { claimItems, producing, waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, test, until } from './fixtures.ts'
import { isHeldBack } from './hold.ts'

/** A connection inside a transaction that the test ends. */
async function transaction(url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  await client.query(`set idle_in_transaction_session_timeout = '60s'`)
  await client.query('begin')
  return client
}

test('of two callers that cancel a fan-out at once, one is told that it did', async ({
  given,
  store,
  hf,
  url,
  pool,
  query,
}) => {
  const made = await waiting({ given, store }, { items: 2 })
  const [item] = await claimItems({ given }, made)
  const settling = await transaction(url)
  await settling.query('select from holdfast.lease where id = $1 for update', [item?.leaseId])
  // the first caller finds an item in the hands of a settle, skips it, and is about to commit
  const first = await transaction(url)
  const cancelled = await runnerIn(first).run(cancelJobs, { ids: [made.parent.id], tenant: null, reason: null })
  expect(cancelled.map(({ id }) => id)).toContain(made.parent.id)
  const second = hf.cancel(made.parent.id).then(
    () => 'told that it had cancelled it',
    (error) => error.code,
  )
  await until(() => isHeldBack(pool, 'job.cancel'), 'the second caller waits for the first')
  await settling.query('rollback')
  await first.query('commit')
  expect(await second).toBe('move_illegal')
  await Promise.all([settling.end(), first.end()])
  await sweepOf(store)
  expect(await query('select from holdfast.job_status where finished_at is null')).toEqual([])
  expect(
    await query(`select from holdfast.event where type = 'job.cancelled' and job_id = $1`, [made.parent.id]),
  ).toHaveLength(1)
})

test('a cancel that finds its job ended by its own failure cancels nothing and says so', async ({
  given,
  store,
  hf,
  url,
  pool,
  query,
}) => {
  const made = await producing({ given, store }, { items: 2 })
  const failing = await transaction(url)
  const error = JSON.stringify({ code: 'handler_failed', message: 'It broke.' })
  await runnerIn(failing).run(failJobs, { fences: [made.parent], errors: [error] })
  const cancel = hf.cancel(made.parent.id).then(
    () => 'told that it had cancelled it',
    (problem) => problem.code,
  )
  await until(() => isHeldBack(pool, 'job.cancel'), 'the cancel waits for the failure')
  await failing.query('commit')
  expect(await cancel).toBe('move_illegal')
  await failing.end()
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'failed' })
  await sweepOf(store)
  expect(await query('select from holdfast.job_status where finished_at is null')).toEqual([])
})
