import { defineJob } from 'holdfast'
import { expect, test, until } from './fixtures.ts'
import { strangerHolds, transaction } from './hold.ts'
import { claimThroughGates } from './limits/claim-gated.ts'
import { runDuty } from './limits/duty.ts'

const noop = () => {}
const work = defineJob('work', { queue: 'q', run: noop })
const lane = { queue: 'q', kind: 'work' }
const many = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n))

/** Leaves so many hints at the gate of the kind, as transactions that queued a job each. */
const leaveHints = (count: number) => `
  insert into holdfast.gate_hint (queue, kind, key, txid) select 'q', 'work', ' ', n::text::xid8 from generate_series(1, ${count}) as n on conflict do nothing`
const hints = 'select from holdfast.gate_hint'

test('weights that are fractions never let more jobs through than there is room for', async ({ hf, store, given }) => {
  // 0.3 + 0.2 + 0.1 - 0.3 - 0.2 is less than 0.1
  await hf.limits.set({ queue: 'q' }, { fair: true, weights: { a: 0.3, b: 0.2, c: 0.1 } })
  await hf.submitMany(
    work,
    ['a', 'b', 'c', 'c', 'c'].map((tenant) => ({ input: null, tenant })),
  )
  const sessionId = await given.session()
  expect(await claimThroughGates(store, { sessionId, ...lane, most: 3 })).toHaveLength(3)
})

test('a claim deletes a bounded number of hints, and still finds that its gate is held back', async ({
  hf,
  store,
  given,
  query,
}) => {
  await hf.limits.set({ kind: 'work' }, { concurrency: 5 })
  await hf.submit(work, null)
  await query(hints.replace('select', 'delete'))
  await query(leaveHints(15_000))
  await query(`update holdfast.gate_hint set held_until = now() + interval '1 h' where txid = '15000'`)
  const sessionId = await given.session()
  expect(await claimThroughGates(store, { sessionId, ...lane, most: 5 })).toEqual([])
  expect(await query(hints)).toHaveLength(5_000)
  await query(`update holdfast.gate_hint set held_until = null`)
  await query(`update holdfast.gate set held_until = null`)
  expect(await claimThroughGates(store, { sessionId, ...lane, most: 5 })).toHaveLength(1)
  expect(await query(hints)).toHaveLength(0)
})

test('the leader collects hints that no worker takes, and the gate stays open', async ({ hf, store, given, query }) => {
  await hf.limits.set({ kind: 'work' }, { concurrency: 5 })
  await hf.submit(work, null)
  await query(leaveHints(30_000))
  const areFew = async () => {
    await runDuty(store)
    return (await query(hints)).length <= 5_000
  }
  await until(areFew, 'hints are collected')
  expect(await query('select from holdfast.gate where is_open')).toHaveLength(1)
  const sessionId = await given.session()
  expect(await claimThroughGates(store, { sessionId, ...lane, most: 5 })).toHaveLength(1)
})

test('a job that is submitted in a transaction with an old snapshot is sent to its gate, however late it commits', async ({
  url,
  hf,
  store,
  query,
}) => {
  const late = await transaction(url)
  await late.query('rollback')
  await late.query('begin isolation level repeatable read')
  await late.query('select from holdfast.limiter')
  await hf.limits.set({ kind: 'work' }, { concurrency: 5 })
  await query('update holdfast.limiter set is_adopted = true')
  await hf.submit(work, null, { tx: late })
  await late.query('commit')
  expect(await query('select gate_key from holdfast.ready')).toEqual([{ gate_key: null }])
  await runDuty(store)
  expect(await query('select gate_key from holdfast.ready')).toEqual([{ gate_key: ' ' }])
})

test('jobs that are queued before a limit is set wait at its gate, however many are due at the same moment', async ({
  hf,
  query,
}) => {
  const runAt = new Date(Date.now() + 3_600_000)
  const other = defineJob('other', { queue: 'q', run: noop })
  await hf.submitMany(
    work,
    many(12_000, (n) => ({ input: null, priority: 1 + (n % 4), runAt })),
  )
  await hf.submitMany(
    work,
    many(12_000, () => ({ input: null, runAt })),
  )
  await hf.submitMany(
    other,
    many(10, () => ({ input: null })),
  )
  await hf.limits.set({ kind: 'work' }, { concurrency: 5 })
  expect(await query(`select from holdfast.ready where gate_key is null and kind = 'work'`)).toHaveLength(0)
  expect(await query(`select from holdfast.ready where gate_key is null and kind = 'other'`)).toHaveLength(10)
})

test('one job that cannot be sent to its gate stops no other', async ({ hf, query }) => {
  const [bad] = await hf.submitMany(
    work,
    many(5, () => ({ input: null })),
  )
  await query(`
    create function refused() returns trigger language plpgsql as $$ begin raise exception 'planted'; end $$;
    create trigger refused before update on holdfast.ready for each row when (old.job_id = '${bad?.id}') execute function refused()`)
  await hf.limits.set({ kind: 'work' }, { concurrency: 5 })
  expect(await query('select job_id from holdfast.ready where gate_key is null')).toEqual([{ job_id: bad?.id }])
})

test('an idle gate is removed once its bucket would be full again', async ({ hf, store, query }) => {
  await hf.limits.set({ kind: 'work', key: '*' }, { rate: { limit: 1, perMs: 3 * 3_600_000 } })
  const idleFor = (key: string, hours: number) =>
    query(
      `insert into holdfast.gate (queue, kind, key, tokens, refilled_at, used_at) values ('q', 'work', ' ${key}', 0, now() - interval '${hours} h', now() - interval '${hours} h')`,
    )
  await idleFor('full', 4)
  await idleFor('filling', 2)
  await runDuty(store)
  expect(await query('select key from holdfast.gate')).toEqual([{ key: ' filling' }])
})

test('while a stranger has locked a gate, an idle worker asks for wake-ups', async ({ open, pool, query }) => {
  const held = defineJob('held', { limit: { key: 'of', concurrency: 1 }, run: noop })
  const hf = await open({ jobs: [held, work], pollMs: 60_000 })
  await query(`insert into holdfast.gate (queue, kind, key, is_open) values ('default', 'held', ' x', true)`)
  const release = await strangerHolds(pool, 'select from holdfast.gate for update')
  await hf.work()
  await until(async () => (await query('select from holdfast.session where wants_wake')).length === 1, 'it is idle')
  await (await hf.submit(work, null)).result()
  const job = await hf.submit(held, { of: 'y' })
  await job.result()
  await release()
})

test('in a fair queue, a remote worker of one tenant gets the jobs of its tenant, whatever others have queued', async ({
  hf,
}) => {
  const far = defineJob('far', { queue: 'far', run: noop })
  await hf.limits.set({ queue: 'far' }, { fair: true })
  await hf.submitMany(
    far,
    many(300, (n) => ({ input: null, tenant: `aaa-${n}` })),
  )
  const own = await hf.submit(far, null, { tenant: 'acme' })
  await hf.submit(far, null, { tenant: 'acme-two' })
  const { id } = await hf.remote.open({ kinds: [{ name: 'far', queue: 'far' }], tenant: 'acme' })
  expect(await hf.remote.claim(id, { most: 5, waitMs: 2_000 })).toMatchObject([{ id: own.id }])
  expect(await hf.remote.claim(id, { most: 5 })).toEqual([])
})
