import { defineJob, type OpenBarrier } from 'holdfast'
import pg from 'pg'
import { expect, test, until } from './fixtures.ts'
import { after, drain, expire, firings, plain, sweepOwned } from './owned.ts'

const hour = 3_600_000

test('the last part that arrives submits the continuation, and no earlier one does', async ({ hf, query }) => {
  const opened = await hf.barrier.open({ id: 'run-1', tenant: 'acme', ...plain })
  expect(opened).toMatchObject({ id: 'run-1', status: 'opened' })
  expect(await hf.barrier.arrive('run-1', 'a')).toBe('arrived')
  expect(await hf.get(opened.job)).toBe(null)
  expect(await hf.barrier.get('run-1')).toMatchObject({
    status: 'open',
    total: 2,
    arrived: 1,
    isComplete: false,
    missing: ['b'],
    continuation: { kind: 'after', job: opened.job },
  })
  expect(await hf.barrier.arrive('run-1', 'b', { tenant: 'acme' })).toBe('fired')
  expect(await hf.get(opened.job)).toMatchObject({ state: 'queued', kind: 'after', tenant: 'acme', input: { n: 1 } })
  expect(await hf.barrier.get('run-1')).toMatchObject({ status: 'fired', arrived: 2, isComplete: true, missing: [] })
  expect(await firings(query)).toBe(1)
  expect((await hf.audit()).violations).toEqual([])
})

test('the continuation runs with its input, once', async ({ open }) => {
  const inputs: unknown[] = []
  const count = defineJob('count', { run: ({ input }) => void inputs.push(input) })
  const hf = await open({ jobs: [count] })
  await hf.work()
  const continuation = { job: count, input: { n: 7 }, priority: 1, meta: { why: 'test' } } as never
  const { job } = await hf.barrier.open({ id: 'x', parts: 3, continuation })
  for (const part of [2, 0, 1]) await hf.barrier.arrive('x', part)
  await hf.handle(job).result()
  expect(inputs).toEqual([{ n: 7 }])
  expect(await hf.get(job)).toMatchObject({ state: 'succeeded', priority: 1, attempt: 1, meta: { why: 'test' } })
})

test.for([{ parts: 0 }, { parts: [] }])(
  'a barrier with parts of $parts fires at once',
  async ({ parts }, { hf, query }) => {
    expect(await hf.barrier.open({ ...plain, id: 'none', parts })).toMatchObject({ status: 'fired' })
    expect(await hf.barrier.get('none')).toMatchObject({ status: 'fired', total: 0, isComplete: true })
    expect(await firings(query)).toBe(1)
    expect((await hf.audit()).violations).toEqual([])
  },
)

test('of two last parts that arrive at the same moment, one fires the continuation', async ({ hf, pool, query }) => {
  await hf.barrier.open({ id: 'race', ...plain })
  const first = await pool.connect()
  await first.query('begin')
  expect(await hf.barrier.arrive('race', 'a', { tx: first })).toBe('arrived')
  // begins before the first has committed, so what it sees of the ledger is older than what it must decide by
  const second = hf.barrier.arrive('race', 'b')
  await until(async () => {
    const waiting = `select from pg_stat_activity where query like '/* owned_barrier.arrive */%' and wait_event_type = 'Lock'`
    return (await query(waiting)).length === 1
  }, 'the second arrival waits for the first')
  await first.query('commit')
  first.release()
  expect(await second).toBe('fired')
  expect(await firings(query)).toBe(1)
})

test('parts that arrive all at once, each twice, on many connections fire one continuation', async ({
  open,
  query,
}) => {
  const all = await Promise.all([1, 2, 3].map(() => open({ batchSize: 7 })))
  const [hf] = all
  for (let round = 0; round < 5; round++) {
    const id = `crowd-${round}`
    await hf?.barrier.open({ ...plain, id, parts: 60 })
    const answers = await Promise.all(
      Array.from({ length: 120 }, (_, n) => all[n % 3]?.barrier.arrive(id, n % 60) as Promise<string>),
    )
    const tally = (word: string) => answers.filter((answer) => answer === word).length
    expect({ fired: tally('fired'), arrived: tally('arrived'), already: tally('already') }).toEqual({
      fired: 1,
      arrived: 59,
      already: 60,
    })
  }
  expect(await firings(query)).toBe(5)
  expect((await hf?.audit())?.violations).toEqual([])
})

test('a part that arrived already is answered so, and counts once', async ({ hf, query }) => {
  await hf.barrier.open({ id: 'twice', ...plain })
  expect(await hf.barrier.arrive('twice', 'a')).toBe('arrived')
  expect(await hf.barrier.arrive('twice', 'a')).toBe('already')
  expect(await hf.barrier.get('twice')).toMatchObject({ status: 'open', arrived: 1 })
  expect(await hf.barrier.arrive('twice', 'b')).toBe('fired')
  expect(await hf.barrier.arrive('twice', 'b')).toBe('already')
  expect(await firings(query)).toBe(1)
})

test('a part that does not exist is refused by name, and harms no part that arrives beside it', async ({ hf }) => {
  await hf.barrier.open({ id: 'strict', ...plain })
  const [good, bad] = await Promise.allSettled([hf.barrier.arrive('strict', 'a'), hf.barrier.arrive('strict', 'c')])
  expect(good).toMatchObject({ value: 'arrived' })
  expect(bad).toMatchObject({ reason: { code: 'part_unknown', message: expect.stringContaining('no part "c"') } })
  expect(await hf.barrier.get('strict')).toMatchObject({ arrived: 1 })
})

test('a late part for a barrier that is gone is abandoned, and nothing fires', async ({ hf, query, store }) => {
  expect(await hf.barrier.arrive('never', 'a')).toBe('abandoned')
  await hf.barrier.open({ id: 'aborted', ...plain })
  await hf.barrier.arrive('aborted', 'a')
  expect(await hf.barrier.abort('aborted')).toBe('aborted')
  expect(await hf.barrier.abort('aborted')).toBe('gone')
  expect(await hf.barrier.arrive('aborted', 'b')).toBe('abandoned')
  await hf.barrier.open({ id: 'expired', ...plain, expires: hour })
  await hf.barrier.arrive('expired', 'a')
  await expire(query, 'expired')
  await sweepOwned(store)
  expect(await hf.barrier.arrive('expired', 'b')).toBe('abandoned')
  expect(await firings(query)).toBe(0)
  expect(await query('select from holdfast.owned_part where barrier_id = $1', ['aborted'])).toEqual([])
})

test('an open barrier that is armed again resets its expiry and keeps what has arrived', async ({ hf, query }) => {
  const first = await hf.barrier.open({ id: 'again', ...plain, expires: hour })
  await hf.barrier.arrive('again', 'a')
  const before = await hf.barrier.get('again')
  const second = await hf.barrier.open({
    id: 'again',
    parts: ['b', 'a'],
    expires: 2 * hour,
    continuation: { job: after, input: 'new' },
  })
  expect(second.status).toBe('armed')
  expect(second.arming).toBeGreaterThan(first.arming)
  expect(second.job).not.toBe(first.job)
  const now = await hf.barrier.get('again')
  expect(now).toMatchObject({ status: 'open', arrived: 1, missing: ['b'], arming: second.arming })
  expect(now?.expiresAt?.getTime()).toBeGreaterThan((before?.expiresAt?.getTime() as number) + hour / 2)
  expect(await hf.barrier.arrive('again', 'b')).toBe('fired')
  expect(await hf.get(first.job)).toBe(null)
  expect(await hf.get(second.job)).toMatchObject({ input: 'new' })
  expect(await firings(query)).toBe(1)
})

test('a barrier that expired without an owner can be armed again, and goes on', async ({ hf, query, store }) => {
  await hf.barrier.open({ id: 'late', ...plain, expires: hour })
  await hf.barrier.arrive('late', 'a')
  await expire(query, 'late')
  await sweepOwned(store)
  expect(await hf.barrier.get('late')).toMatchObject({ status: 'expired', arrived: 1 })
  expect(await hf.barrier.open({ id: 'late', ...plain, expires: hour })).toMatchObject({ status: 'armed' })
  expect(await hf.barrier.arrive('late', 'b')).toBe('fired')
})

test('a barrier that has fired stays fired when it is opened again', async ({ hf, query }) => {
  const first = await hf.barrier.open({ ...plain, id: 'done', parts: 1 })
  await hf.barrier.arrive('done', 0)
  expect(await hf.barrier.open({ ...plain, id: 'done', parts: 1 })).toEqual({ ...first, status: 'fired' })
  expect(await hf.barrier.abort('done')).toBe('fired')
  expect(await firings(query)).toBe(1)
})

test('a barrier that was removed and opened anew is another one, and fires on its own', async ({ hf, query }) => {
  const first = await hf.barrier.open({ id: 'anew', ...plain })
  await hf.barrier.arrive('anew', 'a')
  await hf.barrier.abort('anew')
  const second = await hf.barrier.open({ id: 'anew', ...plain })
  expect(second.status).toBe('opened')
  expect(second.arming).toBeGreaterThan(first.arming)
  expect(second.job).not.toBe(first.job)
  expect(await hf.barrier.get('anew')).toMatchObject({ arrived: 0 })
  await hf.barrier.arrive('anew', 'a')
  expect(await hf.barrier.arrive('anew', 'b')).toBe('fired')
  expect(await firings(query)).toBe(1)
})

test('many who open the same barrier at once open it once', async ({ hf, query }) => {
  const all = await Promise.all(Array.from({ length: 20 }, () => hf.barrier.open({ ...plain, id: 'many', parts: 50 })))
  expect(all.filter(({ status }) => status === 'opened')).toHaveLength(1)
  expect(new Set(all.map(({ arming }) => arming)).size).toBe(20)
  expect(await query('select count(*)::int as count from holdfast.owned_part')).toEqual([{ count: 50 }])
  expect((await hf.barrier.get('many'))?.arming).toBe(Math.max(...all.map(({ arming }) => arming)))
})

test('a barrier is not armed again with other parts', async ({ hf }) => {
  await hf.barrier.open({ id: 'parts', ...plain })
  for (const parts of [['a'], ['a', 'c'], ['a', 'b', 'c'], 2, 0])
    await expect(hf.barrier.open({ ...plain, id: 'parts', parts })).rejects.toMatchObject({ code: 'barrier_conflict' })
  expect(await hf.barrier.get('parts')).toMatchObject({ status: 'open', total: 2 })
})

test('a barrier is there only for its own tenant', async ({ hf, query }) => {
  await hf.barrier.open({ id: 'mine', tenant: 'acme', ...plain })
  await expect(hf.barrier.open({ id: 'mine', tenant: 'other', ...plain })).rejects.toMatchObject({
    code: 'barrier_conflict',
    message: 'The barrier "mine" already exists; choose another id.',
  })
  expect(await hf.barrier.get('mine', { tenant: 'other' })).toBe(null)
  expect(await hf.barrier.arrive('mine', 'a', { tenant: 'other' })).toBe('abandoned')
  expect(await hf.barrier.abort('mine', { tenant: 'other' })).toBe('gone')
  const both = [
    hf.barrier.arrive('mine', 'a', { tenant: 'other' }),
    hf.barrier.arrive('mine', 'a', { tenant: 'acme' }),
    hf.barrier.arrive('mine', 'a'),
  ]
  expect(await Promise.all(both)).toEqual(['abandoned', 'arrived', 'already'])
  expect(await query('select arrived from holdfast.owned_barrier')).toEqual([{ arrived: 1 }])
})

test('an expiry in the past is refused, by the clock of the database', async ({ hf, query }) => {
  for (const expires of [new Date(Date.now() - 1000), new Date(0), new Date(Number.NaN), 0, -5, Number.NaN, Date.now()])
    await expect(hf.barrier.open({ id: 'past', ...plain, expires })).rejects.toMatchObject({
      code: 'option_invalid',
      message: expect.stringContaining('expires'),
    })
  expect(await query('select from holdfast.owned_barrier')).toEqual([])
  await hf.barrier.open({ id: 'past', ...plain, expires: hour })
  const before = await hf.barrier.get('past')
  await expect(hf.barrier.open({ id: 'past', ...plain, expires: new Date(0) })).rejects.toThrow('expires')
  expect(await hf.barrier.get('past')).toEqual(before)
})

test.for<[string, Partial<Record<keyof OpenBarrier, unknown>>, string]>([
  ['an empty id', { id: '' }, 'option_invalid'],
  ['an id with NUL', { id: 'a\0b' }, 'option_invalid'],
  ['an id that is no text', { id: 7 }, 'option_invalid'],
  ['parts below zero', { parts: -1 }, 'option_invalid'],
  ['half a part', { parts: 1.5 }, 'option_invalid'],
  ['too many parts', { parts: 1_000_001 }, 'option_invalid'],
  ['no parts', { parts: undefined }, 'option_invalid'],
  ['parts of the same name', { parts: ['a', 'b', 'a'] }, 'option_invalid'],
  ['a part without a name', { parts: [''] }, 'option_invalid'],
  ['a part that is no text', { parts: [{}] }, 'option_invalid'],
  ['a tenant that is no name', { tenant: 'a b' }, 'option_invalid'],
  ['no continuation', { continuation: undefined }, 'unknown_kind'],
  ['a continuation that is a text', { continuation: { job: 'after', input: 1 } }, 'unknown_kind'],
  ['a continuation with a key', { continuation: { job: after, input: 1, key: 'k' } }, 'option_invalid'],
  ['a continuation whose input cannot be stored', { continuation: { job: after, input: () => 1 } }, 'not_storable'],
  ['an owner without a tenant', { owner: { name: 'x', execution: 'y' }, expires: 5 }, 'option_invalid'],
  ['an owner without an expiry', { owner: { name: 'x', execution: 'y' }, tenant: 't' }, 'option_invalid'],
  ['an owner without an execution', { owner: { name: 'x' }, tenant: 't', expires: 5 }, 'option_invalid'],
  ['an owner that is null', { owner: null, tenant: 't', expires: 5 }, 'option_invalid'],
])('%s is refused before anything is written', async ([, wrong, code], { hf, query }) => {
  await expect(hf.barrier.open({ id: 'bad', ...plain, ...wrong } as never)).rejects.toMatchObject({ code })
  expect(await query('select from holdfast.owned_barrier')).toEqual([])
})

test('an owner that this process does not know is refused if it knows others', async ({ open }) => {
  const owner = { read: async () => 'running', markFailed: async () => 'no' }
  const hf = await open({ owners: { known: owner } })
  const barrier = { id: 'o', ...plain, tenant: 't', expires: hour }
  await expect(hf.barrier.open({ ...barrier, owner: { name: 'other', execution: 'e' } })).rejects.toMatchObject({
    code: 'owner_unknown',
    message: expect.stringContaining('known'),
  })
  await hf.barrier.open({ ...barrier, owner: { name: 'known', execution: 'e' } })
  expect(await hf.barrier.get('o')).toMatchObject({ owner: { name: 'known', execution: 'e' } })
})

test('what happens to a barrier in a transaction of the caller happens if and only if it commits', async ({
  hf,
  pool,
  query,
}) => {
  const client = await pool.connect()
  await client.query('begin')
  await hf.barrier.open({ ...plain, id: 'tx', parts: 1 }, { tx: client })
  expect(await hf.barrier.get('tx')).toBe(null)
  await client.query('rollback')
  expect(await hf.barrier.get('tx')).toBe(null)
  await hf.barrier.open({ ...plain, id: 'tx', parts: 1 })
  await client.query('begin')
  expect(await hf.barrier.arrive('tx', 0, { tx: client })).toBe('fired')
  await client.query('rollback')
  expect(await hf.barrier.get('tx')).toMatchObject({ status: 'open', arrived: 0 })
  expect(await firings(query)).toBe(0)
  await client.query('begin')
  await hf.barrier.arrive('tx', 0, { tx: client })
  await client.query('commit')
  client.release()
  expect(await firings(query)).toBe(1)
})

test('a barrier opened twice in one transaction has its parts once', async ({ hf, pool, query }) => {
  const client = await pool.connect()
  await client.query('begin')
  expect(await hf.barrier.open({ id: 'tx', ...plain }, { tx: client })).toMatchObject({ status: 'opened' })
  expect(await hf.barrier.open({ id: 'tx', ...plain }, { tx: client })).toMatchObject({ status: 'armed' })
  await client.query('commit')
  client.release()
  expect(await query('select name from holdfast.owned_part order by name')).toEqual([{ name: 'a' }, { name: 'b' }])
})

test('arrivals, arming and aborts of the same barriers race without harm', async ({ open, query }) => {
  const all = await Promise.all([1, 2, 3].map(() => open({ poolSize: 6, batchSize: 5 })))
  const errors: unknown[] = []
  const moves = Array.from({ length: 300 }, async (_, n) => {
    const { barrier } = all[n % 3] as (typeof all)[number]
    const id = `r${n % 4}`
    try {
      if (n % 11 === 0) await barrier.abort(id)
      else if (n % 5 === 0) await barrier.open({ ...plain, id, parts: 4, expires: hour })
      else await barrier.arrive(id, (n % 7) % 4)
    } catch (error) {
      errors.push(error)
    }
  })
  await Promise.all(moves)
  expect(errors).toEqual([])
  const fired = await query('select from holdfast.owned_barrier where fired_at is not null')
  expect(await firings(query)).toBe(fired.length)
  expect((await all[0]?.audit())?.violations).toEqual([])
})

test('a drained barrier whose continuation never fired is healed, not failed', async ({ hf, query, store }) => {
  const { job } = await hf.barrier.open({ id: 'drained', ...plain })
  await drain(query, 'drained', 2)
  const { healed } = await sweepOwned(store)
  expect(healed).toEqual([
    {
      barrier: 'drained',
      job,
      orphan: 'owned-drained-not-fired',
      message: 'all parts had arrived, but the continuation had never fired; fired',
    },
  ])
  expect(await hf.get(job)).toMatchObject({ state: 'queued', input: { n: 1 } })
  expect((await sweepOwned(store)).healed).toEqual([])
  expect(await firings(query)).toBe(1)
  expect((await hf.audit()).violations).toEqual([])
})

test('a drained barrier that is armed again fires at once', async ({ hf, query }) => {
  await hf.barrier.open({ id: 'drained', ...plain })
  await drain(query, 'drained', 0)
  expect(await hf.barrier.open({ id: 'drained', ...plain })).toMatchObject({ status: 'fired' })
  expect(await firings(query)).toBe(1)
})

test('however many leaders heal a drained barrier at once, it fires once', async ({ hf, query, store }) => {
  for (let n = 0; n < 20; n++) {
    await hf.barrier.open({ id: `d${n}`, ...plain })
    await drain(query, `d${n}`, 2)
  }
  const sweeps = await Promise.all([1, 2, 3, 4].map(() => sweepOwned(store)))
  expect(sweeps.flatMap(({ problems, failed }) => [...problems, ...failed])).toEqual([])
  await sweepOwned(store)
  expect(await firings(query)).toBe(20)
})

test('a continuation that is there already is not submitted a second time', async ({ hf, query, store }) => {
  const { job } = await hf.barrier.open({ id: 'restored', ...plain })
  await hf.barrier.arrive('restored', 'a')
  await hf.barrier.arrive('restored', 'b')
  await hf.cancel(job)
  // a backup of this one table brings the barrier back as it was before it fired
  await query('alter table holdfast.owned_barrier disable trigger owned_fence')
  await query('update holdfast.owned_barrier set fired_at = null')
  await query('alter table holdfast.owned_barrier enable trigger owned_fence')
  await sweepOwned(store)
  expect(await hf.barrier.get('restored')).toMatchObject({ status: 'fired' })
  expect(await hf.get(job)).toMatchObject({ state: 'cancelled' })
  expect(await firings(query)).toBe(1)
})

test('a negative count of parts is recounted from the ledger', async ({ hf, query, store }) => {
  await hf.barrier.open({ id: 'negative', ...plain })
  await hf.barrier.arrive('negative', 'a')
  await query('update holdfast.owned_barrier set arrived = -3')
  expect(await hf.barrier.get('negative')).toMatchObject({ isComplete: 'unknown' })
  const { healed } = await sweepOwned(store)
  expect(healed).toMatchObject([{ barrier: 'negative', orphan: 'owned-negative-count' }])
  expect(await hf.barrier.get('negative')).toMatchObject({ status: 'open', arrived: 1, isComplete: false })
  await query('update holdfast.owned_barrier set arrived = -3')
  expect(await hf.barrier.arrive('negative', 'b')).toBe('fired')
  expect(await hf.barrier.get('negative')).toMatchObject({ arrived: 2, isComplete: true })
})

test('a count of parts that drifted is recounted from the ledger', async ({ hf, query, store }) => {
  await hf.barrier.open({ ...plain, id: 'drift', parts: 9 })
  await hf.barrier.arrive('drift', 0)
  await query(
    `update holdfast.owned_barrier set arrived = 5, moved_at = now() - interval '1 h', checked_at = now() - interval '1 h'`,
  )
  const { healed } = await sweepOwned(store)
  expect(healed).toMatchObject([{ barrier: 'drift', orphan: 'owned-counter-drift' }])
  expect(await hf.barrier.get('drift')).toMatchObject({ arrived: 1 })
})

test('a count that drifted fires nothing early', async ({ hf, query }) => {
  await hf.barrier.open({ ...plain, id: 'early', parts: 3 })
  await query('update holdfast.owned_barrier set arrived = 2')
  expect(await hf.barrier.arrive('early', 0)).toBe('arrived')
  expect(await hf.barrier.get('early')).toMatchObject({ status: 'open', arrived: 1 })
  await hf.barrier.arrive('early', 1)
  expect(await hf.barrier.arrive('early', 2)).toBe('fired')
  expect(await firings(query)).toBe(1)
})

test('expiry with work left, with all work done, and with a negative count are three messages', async ({
  hf,
  query,
  store,
}) => {
  for (const id of ['left', 'done', 'negative']) await hf.barrier.open({ id, ...plain, expires: hour })
  await hf.barrier.arrive('left', 'a')
  // the count still says that nothing has arrived: only the ledger knows better
  await drain(query, 'done', 0)
  await drain(query, 'negative', -1)
  for (const id of ['left', 'done', 'negative']) await expire(query, id)
  const { healed, failed } = await sweepOwned(store)
  expect(failed).toEqual([])
  expect(Object.fromEntries(healed.map(({ barrier, message }) => [barrier, message]))).toEqual({
    left: 'expired with missing parts: 1 of 2 parts have not arrived; it has no owner to notify, so it was closed',
    done: 'all parts had arrived, past its expiry, but the continuation had never fired; fired',
    negative: expect.stringMatching(
      /^its count of arrived parts was negative \(-1\).*; recounted from the ledger, and the/,
    ),
  })
  expect(await hf.barrier.get('left')).toMatchObject({ status: 'expired' })
  expect(await hf.barrier.get('done')).toMatchObject({ status: 'fired' })
  expect(await hf.barrier.get('negative')).toMatchObject({ status: 'fired' })
})

test('a barrier that has not expired is never touched', async ({ hf, query, store }) => {
  await hf.barrier.open({ id: 'fresh', ...plain, expires: hour })
  await hf.barrier.open({ id: 'endless', ...plain })
  await hf.barrier.arrive('fresh', 'a')
  const rows = () => query('select * from holdfast.owned_barrier order by id')
  const before = await rows()
  expect(await sweepOwned(store)).toMatchObject({ healed: [], failed: [], skipped: [], problems: [] })
  expect(await rows()).toEqual(before)
})

test('one bad barrier does not block the others', async ({ hf, query, store }) => {
  for (const id of ['d1', 'd2', 'd3', 'e1', 'e2', 'e3']) await hf.barrier.open({ id, ...plain, expires: hour })
  for (const id of ['d1', 'd2', 'd3']) await drain(query, id, 2)
  for (const id of ['e1', 'e2', 'e3']) await expire(query, id)
  await query(`
    create function holdfast.refuse_poison() returns trigger language plpgsql as $$
    begin raise exception 'poison'; end $$;
    create trigger poison before update on holdfast.owned_barrier for each row when (old.id in ('d2', 'e2'))
    execute function holdfast.refuse_poison()`)
  const { healed, failed, sweep } = await sweepOwned(store)
  expect(healed.map(({ barrier }) => barrier).sort()).toEqual(['d1', 'd3', 'e1', 'e3'])
  expect(new Set(failed.map(({ id }) => id))).toEqual(new Set(['d2', 'e2']))
  expect(sweep.isSystemic).toBe(false)
})

test('barriers that have fired or expired are forgotten after a week, and open ones never', async ({
  hf,
  query,
  store,
}) => {
  for (const id of ['fired', 'open', 'young']) await hf.barrier.open({ ...plain, id, parts: 1 })
  for (const id of ['fired', 'young']) await hf.barrier.arrive(id, 0)
  await query('alter table holdfast.owned_barrier disable trigger owned_fence')
  await query(`update holdfast.owned_barrier set fired_at = now() - interval '8 d' where id = 'fired'`)
  await query(
    `update holdfast.owned_barrier set opened_at = now() - interval '80 d', armed_at = now() - interval '80 d'`,
  )
  await sweepOwned(store)
  expect(await query('select id from holdfast.owned_barrier order by id')).toEqual([{ id: 'open' }, { id: 'young' }])
  expect(await hf.barrier.arrive('fired', 0)).toBe('abandoned')
})

test('the database itself refuses what a barrier never does', async ({ hf, query }) => {
  await hf.barrier.open({ ...plain, id: 'guarded', parts: 1 })
  await hf.barrier.arrive('guarded', 0)
  for (const wrong of [
    'update holdfast.owned_barrier set fired_at = null',
    'update holdfast.owned_barrier set fired_at = now()',
    'update holdfast.owned_barrier set arming = arming - 1',
    `update holdfast.owned_barrier set id = 'other'`,
    'update holdfast.owned_part set arrived_at = null',
    'update holdfast.owned_barrier set expired_at = now()',
    `update holdfast.owned_barrier set owner = 'half'`,
    'update holdfast.owned_barrier set total = -1',
  ])
    await expect(query(wrong)).rejects.toMatchObject({ code: '23514' })
})

test('an audit finds a count that is off, a firing too many or too few, and a drained barrier', async ({
  hf,
  query,
}) => {
  const found = async () =>
    (await hf.audit()).violations.map(({ invariant, examples }) => [invariant, examples[0]?.subject])
  for (const id of ['count', 'unfired', 'drained']) await hf.barrier.open({ ...plain, id, parts: 1 })
  for (const id of ['count', 'unfired']) await hf.barrier.arrive(id, 0)
  expect(await found()).toEqual([])
  await query(`update holdfast.owned_barrier set arrived = 7 where id = 'count'`)
  await query(`delete from holdfast.job where id = (select job_id from holdfast.owned_barrier where id = 'unfired')`)
  await drain(query, 'drained', 1)
  await query(`update holdfast.owned_barrier set moved_at = now() - interval '1 h'`)
  expect(await found()).toEqual(
    expect.arrayContaining([
      ['owned-counters-match-ledger', 'count'],
      ['one-firing-per-arming', 'unfired'],
      ['drained-is-fired', 'drained'],
    ]),
  )
  await query('alter table holdfast.owned_barrier disable trigger owned_fence')
  expect(await found()).toContainEqual(['guards-stand', 'owned_fence'])
})

test('a part whose commit was lost with its connection can arrive again', async ({ hf, url, query }) => {
  await hf.barrier.open({ ...plain, id: 'lost', parts: 1 })
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  expect(await hf.barrier.arrive('lost', 0, { tx: client })).toBe('fired')
  await query('select pg_terminate_backend($1)', [(client as unknown as { processID: number }).processID])
  expect(await hf.barrier.arrive('lost', 0)).toBe('fired')
  await client.end().catch(() => {})
  expect(await firings(query)).toBe(1)
})
