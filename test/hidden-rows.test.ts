import { makeDuties } from '#holdfast/reaper/duties'
import { sweepOf } from './crash/sweep.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'
import { drain, expire, plain } from './owned.ts'

/** Fan-outs with one queued item each, whose ids begin with this. Their job is gone. */
const fanOuts = (prefix: string, count: number) => `
  with barrier as (
    insert into holdfast.barrier (id, job_id, stage, tenant, sealed_at, armed_at, moved_at, total)
    select ('${prefix}' || substr(gen_random_uuid()::text, 2))::uuid, gen_random_uuid(), 0, 'default', now(), now(), now() - interval '1 h', 1
    from generate_series(1, ${count})
    returning id
  ),
  item as (
    insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input, barrier_id, position)
    select gen_random_uuid(), now(), 3, 2, 'plain', 'nobody', 'default', 'null', id, 0 from barrier
    returning *
  )
  insert into holdfast.ready (job_id, run_at, kind, queue, tenant, priority, crash_budget, barrier_id)
  select id, now(), kind, queue, tenant, priority, crash_budget, barrier_id from item`

/** The first barriers that sweeps heal with one duty. */
async function healed(store: Fixtures['store'], name: string, count = 1): Promise<string[]> {
  const duties = makeDuties().filter((duty) => duty.name === name)
  const all: string[] = []
  const isHealed = async () => {
    all.push(...(await sweepOf(store, duties)).healed.map(({ barrier }) => barrier))
    return all.length >= count
  }
  await until(isHealed, 'they are healed', 40_000)
  return all.sort()
}

for (const [name, before] of [
  ['stopUnstopped', 'select'],
  ['stopOrphanItems', 'delete from holdfast.barrier'],
] as const)
  test(`fan-outs whose items a stranger holds, however many, hide none that can be stopped: ${name}`, async ({
    store,
    pool,
    query,
  }) => {
    await query(fanOuts('1', 200))
    const release = await strangerHolds(pool, 'select from holdfast.ready for update')
    await query(fanOuts('f', 10))
    const last = await query<{ id: string }>(
      `select id from holdfast.barrier where id > 'f0000000-0000-0000-0000-000000000000' order by id`,
    )
    await query(before)
    expect(await healed(store, name, 10)).toEqual(last.map(({ id }) => id))
    await release()
  }, 60_000)

test('quiet fan-outs, however many, hide none whose counters have drifted', async ({ store, query }) => {
  await query(fanOuts('1', 100))
  await query(fanOuts('f', 1))
  const [last] = await query<{ id: string }>(
    `update holdfast.barrier set failed = 7, moved_at = now() - interval '1 min' where id > 'f0000000-0000-0000-0000-000000000000' returning id`,
  )
  expect(await healed(store, 'recount')).toEqual([last?.id])
})

const hour = 3_600_000

for (const [name, spoil] of [
  ['fireDrainedOwned', (query: Fixtures['query'], id: string) => drain(query, id, 2)],
  ['expireUnowned', expire],
  [
    'recountOwned',
    (query: Fixtures['query'], id: string) =>
      query(
        `update holdfast.owned_barrier set arrived = 1, moved_at = now() - interval '1 h', checked_at = now() - interval '1 h' where id = $1`,
        [id],
      ),
  ],
] as const)
  test(`standalone barriers that a stranger holds, however many, hide no other: ${name}`, async ({
    hf,
    store,
    pool,
    query,
  }) => {
    const ids = Array.from({ length: 200 }, (_, index) => `held ${index}`)
    for (const id of ids) await hf.barrier.open({ id, ...plain, expires: hour })
    for (const id of ids) await spoil(query, id)
    const release = await strangerHolds(pool, 'select from holdfast.owned_barrier for update')
    await hf.barrier.open({ id: 'the other', ...plain, expires: hour })
    await spoil(query, 'the other')
    expect(await healed(store, name)).toEqual(['the other'])
    await release()
  }, 60_000)
