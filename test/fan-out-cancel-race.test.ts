import pg from 'pg'
import { openBarrier } from '#holdfast/fan-out/fan-out.sql'
import { type Runner, runnerIn } from '#holdfast/postgres/store'
import { failJobs } from '#holdfast/settle/settle.sql'
import { redoJobs } from '#holdfast/submit/redo.sql'
import { cancelJobs } from '#holdfast/submit/submit.sql'
import { add, claimItems, fail, finish, producing, seal, waiting } from './barrier/given.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import type { Running } from './given.ts'
import { isHeldBack, strangerHolds, transaction } from './hold.ts'

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
  // nor has it cancelled what the first one had to leave
  expect(await query(`select from holdfast.event where type = 'job.cancelled' and job_id = $1`, [item?.id])).toEqual([])
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
  const asked = `select from pg_stat_activity where query like '%job.live%' and pid <> pg_backend_pid()`
  await until(async () => (await query(asked)).length > 0, 'the cancel has met the failure')
  await failing.query('commit')
  expect(await cancel).toBe('move_illegal')
  expect(await query(`select from holdfast.event where type = 'job.cancelled'`)).toEqual([])
  await failing.end()
  expect(await hf.get(made.parent.id)).toMatchObject({ state: 'failed' })
  await sweepOf(store)
  expect(await query('select from holdfast.job_status where finished_at is null')).toEqual([])
})

test('a cancel takes along what somebody changed while it waited: no job is left queued that has ended', async ({
  given,
  store,
  hf,
  url,
  pool,
  query,
}) => {
  const made = await waiting({ given, store }, { items: 2 })
  const settling = await transaction(url)
  await settling.query('select from holdfast.barrier for update')
  const cancel = hf.cancel(made.parent.id)
  await until(() => isHeldBack(pool, 'job.cancel'), 'the cancel waits for the barrier')
  // as the leader does that takes a crash back
  await query('update holdfast.ready set crashes = crashes')
  await query('update holdfast.waiting set crashes = crashes')
  await settling.query('commit')
  await settling.end()
  await cancel
  expect(await query('select job_id from holdfast.ready union all select job_id from holdfast.waiting')).toEqual([])
  expect((await hf.audit()).violations).toEqual([])
})

type Parts = Pick<Fixtures, 'given' | 'store'>

/** An item of a fan-out that has fanned out itself, with an item of each that runs. The barriers have these ids. */
async function nested(parts: Parts, ids: { outer: string; inner: string }) {
  const open = async (parent: Running, id: string) => {
    const asked = { fence: parent, id, count: 9, share: null, expiresMs: null }
    const [barrier] = await parts.store.run(openBarrier, asked)
    if (!barrier) throw new Error('The barrier was not opened.')
    const items = await add(parts.store, { parent, barrier }, 2)
    return { parent, barrier, items }
  }
  const outer = await open(await parts.given.running(), ids.outer)
  await seal(parts.store, outer)
  const [item, sibling] = (await claimItems(parts, outer)) as [Running, Running]
  const inner = await open(item, ids.inner)
  const [below] = (await claimItems(parts, inner)) as [Running]
  return { outer, inner, item, running: [sibling, below] }
}

/** Runs two statements at once, on connections of their own, while a stranger holds a barrier that both wait for, the first one first. */
async function meeting(
  { url, pool }: Pick<Fixtures, 'url' | 'pool'>,
  held: string,
  statements: [name: string, run: (runner: Runner) => Promise<unknown>][],
): Promise<void> {
  const letGo = await strangerHolds(pool, 'select from holdfast.barrier where id = $1 for update', [held])
  const clients: pg.Client[] = []
  const running: Promise<unknown>[] = []
  for (const [name, run] of statements) {
    const client = new pg.Client(url)
    client.on('error', () => {})
    await client.connect()
    clients.push(client)
    running.push(run(runnerIn(client)))
    await until(() => isHeldBack(pool, name), `${name} waits`)
  }
  await letGo()
  await Promise.all(running)
  await Promise.all(clients.map((client) => client.end()))
}

const low = '00000000-0000-7000-8000-000000000000'
const high = 'ffffffff-ffff-7fff-bfff-ffffffffffff'
const orders = [
  { outer: low, inner: high },
  { outer: high, inner: low },
]

test.for(orders)(
  'a cancel of an item that has fanned out waits for a settle of both fan-outs, and neither for the other: %o',
  async (ids, { given, store, hf, url, pool }) => {
    const { inner, item, running } = await nested({ given, store }, ids)
    await seal(store, inner)
    await meeting({ url, pool }, low, [
      ['job.finish', (runner) => finish(runner, running)],
      ['job.cancel', (runner) => runner.run(cancelJobs, { ids: [item.id], tenant: null, reason: null })],
    ])
    expect(await hf.get(item.id)).toMatchObject({ state: 'cancelled' })
    for (const { id } of running) expect(await hf.get(id)).toMatchObject({ state: 'succeeded' })
    await sweepOf(store)
    expect((await hf.audit()).violations).toEqual([])
  },
)

test.for(orders.flatMap((ids) => [false, true].map((isFromStart) => ({ ids, isFromStart }))))(
  'a redo of an item that has fanned out and a settle of both fan-outs wait in one order: %o',
  async ({ ids, isFromStart }, { given, store, hf, url, pool }) => {
    const { item, running } = await nested({ given, store }, ids)
    await fail(store, [item])
    await meeting({ url, pool }, high, [
      ['job.redo', (runner) => runner.run(redoJobs, { ids: [item.id], tenant: null, isFromStart })],
      ['job.finish', (runner) => finish(runner, running)],
    ])
    expect(await hf.get(item.id)).toMatchObject({ state: 'queued' })
    for (const { id } of running) expect(await hf.get(id)).toMatchObject({ state: 'succeeded' })
    await sweepOf(store)
    expect((await hf.audit()).violations).toEqual([])
  },
)
