import { defineJob, type Holdfast } from 'holdfast'
import { logDuties } from '#holdfast/reaper/duties'
import { startMember, swift } from './crash/member.ts'
import { expect, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

const day = 86_400_000
const noop = defineJob('noop', { run: () => 'done' })
const some = (count: number, how = {}) => Array.from({ length: count }, () => ({ input: null, ...how }))
const ascending = (numbers: number[]) => numbers.toSorted((a, b) => a - b)
const reading = (url: string, options = {}, settings = {}) =>
  startMember({
    url,
    role: 'read',
    kinds: [],
    read: { group: 'mine', options: { from: 'beginning', ...options } },
    settings: { ...swift, ...settings },
  })

test('two reader processes, twenty events: twenty dispatches', async ({ url, hf }) => {
  const readers = [await reading(url, { partitions: 2 }), await reading(url, { partitions: 2 })]
  await until(async () => (await hf.events.groups())[0]?.readers === 2, 'both are there')
  await hf.submitMany(noop, some(20))
  const seen = () => readers.flatMap((reader) => reader.events())
  await until(async () => (await hf.events.groups())[0]?.behind === 0, 'the group is at the end')
  expect(ascending(seen())).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
})

test('a reader that is killed in the middle of an event loses nothing: the next one begins with it', async ({
  url,
  hf,
  query,
}) => {
  const victim = await reading(url)
  await hf.submitMany(noop, some(3))
  await until(() => victim.events().length === 3, 'three events')
  await hf.submitMany(noop, some(4, { tenant: 'slow' }))
  await until(() => victim.events().length === 4, 'the fourth is begun')
  const heir = await reading(url)
  const killedAtMs = performance.now()
  await victim.kill('SIGKILL')
  heir.order({ open: 'event' })
  await until(() => heir.events().length === 4, 'all that was not handled')
  expect(heir.events()).toEqual([4, 5, 6, 7])
  expect(performance.now() - killedAtMs).toBeLessThan(swift.readerLeaseMs + swift.readerBeatMs + 5_000)
  expect(await query(`select crashes from holdfast.event_cursor`)).toEqual([{ crashes: 0 }])
})

test('a reader that never hears that it has claimed a cursor does not keep it unread', async ({ url, hf }) => {
  const wire = await makeWire(url)
  const cut = wire.cut('after', 'cursor.claim')
  const reader = await reading(wire.url)
  await cut
  await hf.submitMany(noop, some(2))
  await until(() => reader.events().length === 2, 'both events')
})

test('a reader that could not tell that it lets a cursor go does not keep it unread', async ({ url, hf }) => {
  const wire = await makeWire(url)
  const first = await reading(wire.url, { partitions: 2 })
  await until(async () => (await hf.events.groups())[0]?.held === 2, 'the first has both cursors')
  const cut = wire.cut('before', 'cursor.release')
  const second = await reading(url, { partitions: 2 })
  await cut
  await hf.submitMany(noop, some(20))
  const seen = () => [...first.events(), ...second.events()]
  await until(() => new Set(seen()).size === 20, 'all events')
  expect(second.events().length).toBeGreaterThan(0)
})

test('a reader that was frozen past its lease moves no cursor and handles no more when it wakes', async ({
  url,
  hf,
  query,
}) => {
  const sleeper = await reading(url)
  await hf.submitMany(noop, some(2, { tenant: 'slow' }))
  await until(() => sleeper.events().length === 1, 'the first is begun')
  await sleeper.kill('SIGSTOP')
  const heir = await reading(url)
  heir.order({ open: 'event' })
  await until(() => heir.events().length === 2, 'the heir handles both')
  await sleeper.kill('SIGCONT')
  sleeper.order({ open: 'event' })
  const [before] = await query(`select seq, term from holdfast.event_cursor`)
  await heir.stop()
  await hf.submit(noop, null)
  await until(() => sleeper.events().at(-1) === 3, 'the sleeper has its share again')
  expect(sleeper.events()).toEqual([1, 3])
  expect(Number((await query(`select term from holdfast.event_cursor`))[0]?.term)).toBeGreaterThan(Number(before?.term))
})

test('an event that kills every reader is found by reading one by one, and parked', { timeout: 90_000 }, async ({
  url,
  hf,
}) => {
  await hf.submitMany(noop, some(5))
  await hf.submit(noop, null, { tenant: 'killer' })
  await hf.submitMany(noop, some(5))
  const handled = new Set<number>()
  for (let round = 1; handled.size < 10; round++) {
    expect(round).toBeLessThan(10)
    const reader = await reading(url)
    const handledBy = () => reader.lines.flatMap((line) => (typeof line.handled === 'number' ? [line.handled] : []))
    await Promise.race([reader.exited, until(() => handledBy().includes(11), 'the last is handled', 60_000)])
    for (const seq of handledBy()) handled.add(seq)
  }
  expect(ascending([...handled])).toEqual([1, 2, 3, 4, 5, 7, 8, 9, 10, 11])
  const parked = await hf.events.parked('mine')
  expect(parked).toMatchObject([{ event: { seq: 6 }, error: 'Its readers died: 5 in a row.' }])
})

test('a parked event that is replayed and kills every reader is parked again, and the group goes on', {
  timeout: 90_000,
}, async ({ url, hf, query }) => {
  await hf.submit(noop, null, { tenant: 'killer' })
  await query(`insert into holdfast.event_group (name, partitions) values ('mine', 1)`)
  await query(`insert into holdfast.event_cursor (group_name, partition, seq) values ('mine', 0, 1)`)
  await query(
    `insert into holdfast.parked_event (group_name, seq, partition, event, error, failures, replay_at)
     select 'mine', seq, 0, row_to_json(event), 'It was parked.', 5, now() from holdfast.event`,
  )
  await hf.submitMany(noop, some(3))
  for (let round = 1, isDone = false; !isDone; round++) {
    expect(round).toBeLessThan(8)
    const reader = await reading(url)
    const done = until(() => reader.events().at(-1) === 4, 'the last', 60_000).then(() => true)
    isDone = await Promise.race([reader.exited.then(() => false), done])
    done.catch(() => {})
  }
  expect(await hf.events.parked('mine')).toMatchObject([
    { event: { seq: 1 }, error: 'Its readers died: 5 in a row.', failures: 10, replayAt: null },
  ])
})

test('a reader that hears nothing polls, and one whose connection breaks connects again', async ({ url, hf }) => {
  const wire = await makeWire(url)
  const reader = await reading(wire.url)
  await hf.submit(noop, null)
  await until(() => reader.events().length === 1, 'the first')
  for (const name of ['cursor.move', 'reader.renew', 'event.read', 'event.mark', 'parked.due'])
    for (const moment of ['before', 'after'] as const) {
      const cut = wire.cut(moment, name)
      await hf.submit(noop, null)
      await cut
    }
  await until(async () => (await hf.events.groups())[0]?.behind === 0, 'the group is at the end')
  expect([...new Set(reader.events())]).toEqual(Array.from({ length: 11 }, (_, index) => index + 1))
})

test('a cursor is read although the answer to its claim, or its release, was lost on the way', async ({
  url,
  open,
}) => {
  const wire = await makeWire(url)
  const hf = await open()
  await hf.submitMany(noop, some(4))
  const claimed = wire.cut('after', 'cursor.claim')
  const reader = await reading(wire.url, { partitions: 2 })
  await claimed
  await until(() => new Set(reader.events()).size === 4, 'all, although nobody heard of the claim')
  const released = wire.cut('before', 'cursor.release')
  await hf.events.subscribe('mine', { partitions: 2 }, () => {})
  await released
  await hf.submitMany(noop, some(20))
  await until(async () => (await hf.events.groups())[0]?.behind === 0, 'both partitions are read')
})

/** Two processes that read for the group, each with a partition. */
async function pair(url: string, hf: Holdfast) {
  const options = { partitions: 2, failures: 2, backoffMs: 1 }
  const readers = [await reading(url, options), await reading(url, options)]
  await until(async () => (await hf.events.groups())[0]?.readers === 2, 'both are there')
  return { readers, seen: () => ascending(readers.flatMap((reader) => reader.events())) }
}

test('two processes: what commits late is not skipped, and a poison event parks and blocks nobody', async ({
  url,
  hf,
  pool,
}) => {
  const { seen } = await pair(url, hf)
  const late = await pool.connect()
  await late.query('begin')
  await hf.submit(noop, null, { tx: late })
  await hf.submitMany(noop, some(6))
  await hf.submitMany(noop, some(2, { tenant: 'poison' }))
  await hf.submitMany(noop, some(6))
  await late.query('commit')
  late.release()
  await until(async () => (await hf.events.groups())[0]?.behind === 0, 'the group is at the end', 25_000)
  expect([...new Set(seen())]).toEqual(Array.from({ length: 15 }, (_, index) => index + 1))
  const parked = await hf.events.parked('mine')
  expect(parked.map(({ event, error }) => [event.seq, error])).toEqual([
    [8, 'This event cannot be handled.'],
    [9, 'This event cannot be handled.'],
  ])
})

test('two processes: the log is not dropped before they have read it, and a later group begins at now or at what is left', async ({
  url,
  hf,
  store,
  query,
}) => {
  const [, drop] = logDuties({ retentionMs: 30 * day, capMs: 90 * day })
  const { readers, seen } = await pair(url, hf)
  await query(
    `insert into holdfast.event_log (type, job_id, kind, tenant) select 'job.log', gen_random_uuid(), 'noop', 'slow' from generate_series(1, 4)`,
  )
  await until(() => seen().length > 0, 'the first is begun')
  await query(
    `update holdfast.event_partition set from_at = from_at - interval '40 days', to_at = to_at - interval '40 days'`,
  )
  await drop?.run(store)
  expect(await query(`select from holdfast.event`)).toHaveLength(4)
  for (const reader of readers) reader.order({ open: 'event' })
  await until(async () => (await hf.events.groups())[0]?.behind === 0, 'all is read')
  expect([...new Set(seen())]).toEqual([1, 2, 3, 4])
  await drop?.run(store)
  expect(await query(`select from holdfast.event`)).toHaveLength(0)
  await hf.submit(noop, null)
  const [all, late]: number[][] = [[], []]
  await hf.events.subscribe('all', { from: 'beginning' }, ({ seq }) => void all?.push(seq))
  await hf.events.subscribe('late', { from: 'now' }, ({ seq }) => void late?.push(seq))
  await hf.submit(noop, null)
  await until(() => all?.length === 2 && late?.length === 1, 'both have read')
  expect([all, late]).toEqual([[5, 6], [6]])
})
