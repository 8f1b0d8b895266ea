import { connect, defineJob, type LogEvent } from 'holdfast'
import pg from 'pg'
import { inject } from 'vitest'
import { makeHorizon } from '#holdfast/events/horizon'
import { pruneBatch } from '#holdfast/reaper/prune.sql'
import { expect, quick, test, until } from './fixtures.ts'

const noop = defineJob('noop', { run: () => 'done' })

async function onServer(...texts: string[]): Promise<void> {
  const client = new pg.Client(inject('server'))
  await client.connect()
  for (const text of texts) await client.query(text)
  await client.end()
}

/** Copies the files of a database under those who use it. Answers how to restore it from them: they lose their connections, and find what was there. */
async function backUp(url: string) {
  const live = new URL(url).pathname.slice(1)
  const [backup, restored] = [`${live}_backup`, `${live}_restored`]
  await onServer(
    `alter database ${live} allow_connections false`,
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${live}'`,
    `create database ${backup} template ${live}`,
    `alter database ${live} allow_connections true`,
  )
  return async (before: (url: string) => Promise<void> = async () => {}) => {
    await onServer(`create database ${restored} template ${backup}`)
    const there = new URL(url)
    there.pathname = `/${restored}`
    await before(there.href)
    await onServer(
      `drop database ${live} with (force)`,
      `alter database ${restored} rename to ${live}`,
      `drop database ${backup}`,
    )
  }
}

/** Submits so many jobs of a tenant, by a process that knows nothing of what was before. */
async function submit(url: string, tenant: string, count: number): Promise<void> {
  const hf = await connect({ url, ...quick })
  await hf.submitMany(
    noop,
    Array.from({ length: count }, () => ({ input: null, tenant })),
  )
  await hf.close()
}

/** What is submitted after a restore has numbers that were drawn before: fewer of them, or more, before anybody looks. */
const cases = [
  { what: 'fewer events', before: 0, after: 10 },
  { what: 'more events', before: 30, after: 10 },
]

test.for(cases)(
  'a database that is restored under living readers hides none of $what that come after it from them',
  { timeout: 60_000 },
  async ({ before, after }, { url, open }) => {
    const hf = await open()
    const read: LogEvent[] = []
    const of = (wanted: string) => read.filter(({ tenant }) => tenant === wanted).length
    await hf.events.subscribe('mine', { from: 'beginning' }, (event) => void read.push(event))
    await submit(url, 'kept', 5)
    await until(() => of('kept') === 5, 'what is in the backup')
    const restore = await backUp(url)
    await submit(url, 'lost', 20)
    await until(() => of('lost') === 20, 'what is not')
    await restore((there) => (before > 0 ? submit(there, 'early', before) : Promise.resolve()))
    await submit(url, 'late', after)
    await until(() => of('early') >= before && of('late') >= after, 'what came after the restore')
    expect([of('kept'), of('early'), of('late')]).toEqual([5, before, after])
  },
)

test('what is known of the end of the log is forgotten once the database was restored', { timeout: 60_000 }, async ({
  url,
  store,
  query,
}) => {
  const horizon = makeHorizon(store)
  await submit(url, 'kept', 5)
  const kept = await until(async () => {
    const level = await horizon.look()
    return level.safe === level.top && level
  })
  const restore = await backUp(url)
  await submit(url, 'lost', 20)
  const lost = await until(async () => {
    const level = await horizon.look().catch(() => null)
    return level !== null && level.safe > kept.safe && level
  })
  await restore()
  const restored = await until(() => horizon.look().catch(() => null))
  expect(restored.top).toBe(kept.top)
  expect(restored.safe).toBeLessThanOrEqual(kept.top)
  expect(restored.restores).toBe(lost.restores + 1)
  await query('update holdfast.prune_mark set seq = $1', [lost.safe])
  const rules = { succeededMs: 1e9, othersMs: 1e9, keysMs: 1e9, capMs: 1e9 }
  await store.run(pruneBatch, { ...rules, safe: kept.safe, most: 10 })
  expect(await query('select seq::int from holdfast.prune_mark')).toEqual([{ seq: kept.safe }])
})

test('a reader whose position is beyond the end of the log after a restore sees what comes', {
  timeout: 60_000,
}, async ({ url, open }) => {
  await submit(url, 'kept', 5)
  const restore = await backUp(url)
  await submit(url, 'lost', 20)
  await restore()
  const leaving = new AbortController()
  const hf = await open()
  const seen: LogEvent[] = []
  const following = (async () => {
    const events = hf.events.watch({ after: 25, signal: leaving.signal, pollMs: 20 })
    for await (const event of events) seen.push(event)
  })()
  const isWatching = `select from pg_stat_activity where query like '%event_mark%' and datname = current_database() and pid <> pg_backend_pid()`
  const client = new pg.Client(url)
  await client.connect()
  await until(async () => ((await client.query(isWatching)).rowCount ?? 0) > 0, 'it looks')
  await client.end()
  await submit(url, 'late', 3)
  await until(() => seen.length === 3, 'what came after the restore')
  expect(seen.map(({ tenant }) => tenant)).toEqual(['late', 'late', 'late'])
  leaving.abort()
  await following
})
