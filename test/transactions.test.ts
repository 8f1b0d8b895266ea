import { drizzle } from 'drizzle-orm/node-postgres'
import { defineJob } from 'holdfast'
import { fromDrizzle } from 'holdfast/drizzle'
import { fromKysely } from 'holdfast/kysely'
import { Kysely, PostgresDialect, sql } from 'kysely'
import type pg from 'pg'
import type { Queryable } from '#holdfast/postgres/store'
import { expect, test, until } from './fixtures.ts'

const greet = defineJob('greet', { run: () => 'hello' })

type InTransaction = (work: (tx: Queryable) => Promise<void>) => Promise<void>

const libraries: Record<string, (pool: pg.Pool) => InTransaction> = {
  pg: (pool) => async (work) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await work(client)
      await client.query('commit')
    } catch (error) {
      await client.query('rollback')
      throw error
    } finally {
      client.release()
    }
  },
  Kysely: (pool) => (work) =>
    new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool }) })
      .transaction()
      .execute((trx) => work(fromKysely(trx))),
  Drizzle: (pool) => (work) => drizzle(pool).transaction((tx) => work(fromDrizzle(tx))),
}

function transactionsOf(library: string, pool: pg.Pool): InTransaction {
  return (libraries[library] as (pool: pg.Pool) => InTransaction)(pool)
}

test.for(Object.keys(libraries))(
  'a job submitted in a %s transaction exists if and only if it commits',
  async (library, { pool, hf, query }) => {
    const inTransaction = transactionsOf(library, pool)
    const failing = inTransaction(async (tx) => {
      await hf.submit(greet, null, { tx, key: 'k' })
      await hf.submitMany(greet, [{ input: 1 }, { input: 2, meta: {} }, { input: 'x'.repeat(1_000) }], { tx })
      throw new Error('the caller changed its mind')
    })
    await expect(failing).rejects.toThrow('changed its mind')
    for (const table of ['job', 'ready', 'job_payload', 'job_key', 'event'])
      expect(await query(`select count(*)::int as n from holdfast.${table}`)).toEqual([{ n: 0 }])

    let id = ''
    let small = ''
    await inTransaction(async (tx) => {
      const handle = await hf.submit(greet, { a: ["it's", '$1', null] }, { tx, key: 'k', meta: { n: 1 } })
      id = handle.id
      expect(await hf.get(id)).toBe(null)
      small = (await hf.submit(greet, ["it's", '$1', null], { tx })).id
    })
    expect(await hf.get(small)).toMatchObject({ state: 'queued', input: ["it's", '$1', null], meta: null })
    expect(await hf.get(id)).toMatchObject({ state: 'queued', input: { a: ["it's", '$1', null] }, meta: { n: 1 } })
  },
)

test.for(Object.keys(libraries))(
  'the commit of a %s transaction wakes a worker',
  async (library, { pool, open, query }) => {
    // a poll so rare that only the wake-up can be in time
    const hf = await open({ jobs: [greet], pollMs: 60_000 })
    await hf.work()
    const inTransaction = transactionsOf(library, pool)
    for (let round = 0; round < 3; round++) {
      await until(
        async () => (await query('select from holdfast.session where wants_wake')).length === 1,
        'the worker is idle',
      )
      let id = ''
      await inTransaction(async (tx) => {
        id = (await hf.submit(greet, null, { tx })).id
      })
      expect(await hf.handle(id, greet).result()).toMatchObject({ output: 'hello' })
    }
  },
)

test('a key taken inside a transaction that rolls back is free again, and who waited for it gets it', async ({
  pool,
  hf,
}) => {
  const inTransaction = transactionsOf('pg', pool)
  let waiting: Promise<{ isNew: boolean }> | undefined
  await inTransaction(async (tx) => {
    await hf.submit(greet, 1, { tx, key: 'k' })
    waiting = hf.submit(greet, 2, { key: 'k' })
    throw new Error('undone')
  }).catch(() => {})
  expect(await waiting).toMatchObject({ isNew: true })
})

test("a job and the caller's own rows are one transaction", async ({ pool, hf, query }) => {
  await query('create table invoice (id int primary key)')
  const db = new Kysely<Record<string, never>>({ dialect: new PostgresDialect({ pool }) })
  const submitBoth = (id: number) =>
    db.transaction().execute(async (trx) => {
      await hf.submit(greet, { id }, { tx: fromKysely(trx) })
      await sql`insert into invoice (id) values (${id})`.execute(trx)
    })
  await submitBoth(1)
  await expect(submitBoth(1)).rejects.toThrow(/duplicate key/)
  expect(await query('select count(*)::int as n from holdfast.job_status where finished_at is null')).toEqual([
    { n: 1 },
  ])
})

const notInTransaction: [what: string, make: (pool: pg.Pool) => unknown, says: RegExp][] = [
  ['a pool', (pool) => pool, /it is a pool, where each query may use another connection; take a client from it/],
  ['a Kysely', (pool) => new Kysely({ dialect: new PostgresDialect({ pool }) }), /it is a Kysely object; pass from/],
  ['a Drizzle database', (pool) => drizzle(pool), /it has no `query`; for Drizzle, pass fromDrizzle\(tx\)/],
  [
    'an adapter around a pool',
    (pool) => ({ query: (text: string, values: unknown[]) => pool.query(text, values) }),
    /is not inside a transaction/,
  ],
  ['nothing that asks', () => ({}), /it has no `query` function/],
  ['a text', () => 'tx', /it is a string/],
]

test.for(notInTransaction)(
  '%s is refused as a transaction, and nothing is written',
  async ([, make, says], { pool, hf, query }) => {
    const tx = make(pool) as Queryable
    const refused = { code: 'option_invalid', message: expect.stringMatching(says) }
    await expect(hf.submit(greet, null, { tx })).rejects.toMatchObject(refused)
    await expect(hf.submitMany(greet, [{ input: 1 }], { tx })).rejects.toMatchObject(refused)
    await expect(hf.barrier.abort('b', { tx })).rejects.toMatchObject(refused)
    expect(await query('select from holdfast.job_status where finished_at is null')).toHaveLength(0)
  },
)

test('a client is refused before its begin and after its commit, and taken while its begin is on the way', async ({
  pool,
  hf,
}) => {
  const client = await pool.connect()
  const refused = { message: expect.stringMatching(/is not inside a transaction; run `begin` on it first/) }
  await expect(hf.submit(greet, null, { tx: client })).rejects.toMatchObject(refused)
  const begun = client.query('begin')
  const { id } = await hf.submit(greet, null, { tx: client })
  await begun
  await client.query('commit')
  expect(await hf.state(id)).toBe('queued')
  await expect(hf.submit(greet, null, { tx: client })).rejects.toMatchObject(refused)
  client.release()
})

test('adapters refuse what is no transaction of their library', ({ pool }) => {
  expect(() => fromKysely(new Kysely({ dialect: new PostgresDialect({ pool }) }) as never)).toThrow(
    /it is a Kysely instance outside a transaction/,
  )
  expect(() => fromDrizzle(drizzle(pool) as never)).toThrow(/it is a Drizzle database outside a transaction/)
})

test("no statement in a caller's transaction answers a column of type void, which libraries such as Prisma cannot read", async ({
  pool,
  open,
}) => {
  // an idle worker, so that there is somebody to notify
  const hf = await open({ jobs: [greet] })
  await hf.work()
  const types: { text: string; type: number }[] = []
  await transactionsOf(
    'pg',
    pool,
  )(async (client) => {
    const tx: Queryable = {
      async query(text, values) {
        const answer = (await client.query(text, values)) as pg.QueryResult
        types.push(...answer.fields.map(({ dataTypeID }) => ({ text: text.slice(0, 40), type: dataTypeID })))
        return answer
      },
    }
    await hf.submit(greet, null, { tx, key: 'k' })
    await hf.submit(greet, null, { tx, key: 'k' })
    await hf.submitMany(greet, [{ input: 1 }, { input: 2 }], { tx })
    await hf.barrier.open({ id: 'b', parts: 2, continuation: { job: greet, input: null } }, { tx })
    await hf.barrier.arrive('b', 0, { tx })
    await hf.barrier.arrive('b', 1, { tx })
    await hf.barrier.abort('b', { tx })
  })
  const voidType = 2278
  expect(types.length).toBeGreaterThan(10)
  expect(types.filter(({ type }) => type === voidType)).toEqual([])
})
