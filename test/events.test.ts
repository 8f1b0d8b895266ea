import { defineJob, type EventContext, type LogEvent, PermanentError } from 'holdfast'
import pg from 'pg'
import { makeWakeups } from '#holdfast/events/wakeups'
import { eventTypes } from '#holdfast/job/event-type'
import { logDuties } from '#holdfast/reaper/duties'
import { expect, gate, newDatabase, test, until } from './fixtures.ts'
import { transaction } from './hold.ts'

const noop = defineJob('noop', { run: () => 'done' })
const day = 86_400_000

/** Keeps what a handler was given. */
function keeper() {
  const events: LogEvent[] = []
  return { events, handler: (event: LogEvent) => void events.push(event), seqs: () => events.map(({ seq }) => seq) }
}

const told = (client: { query: (text: string) => Promise<unknown> }, tenant: string) =>
  client.query(
    `insert into holdfast.event_log (type, job_id, kind, tenant) values ('job.log', gen_random_uuid(), 'by-hand', '${tenant}')`,
  )

test('a group reads each event of a job once, in order, with what the job became', async ({ open }) => {
  const hf = await open({ jobs: [noop] })
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', { from: 'beginning' }, handler)
  await hf.work()
  const handle = await hf.submit(noop, null, { tenant: 'acme' })
  await until(() => events.length === 2, 'both events')
  expect(events).toMatchObject([
    { type: 'job.submitted', jobId: handle.id, kind: 'noop', tenant: 'acme', state: 'queued', attempt: 0 },
    { type: 'job.finished', jobId: handle.id, state: 'succeeded', attempt: 1, stage: 0 },
  ])
  expect(events[1]?.id).toBe(`evt_${handle.id.replaceAll('-', '')}_${events[1]?.seq}`)
})

test('a group goes on where it stopped, and a new one begins at now or at the beginning', async ({ open }) => {
  const first = await open()
  await first.submitMany(
    noop,
    Array.from({ length: 3 }, () => ({ input: null })),
  )
  const [before, now, again] = [keeper(), keeper(), keeper()]
  await first.events.subscribe('all', { from: 'beginning' }, before.handler)
  await first.events.subscribe('new', { from: 'now' }, now.handler)
  await until(() => before.events.length === 3, 'what was there')
  await first.submit(noop, null)
  await until(() => before.events.length === 4 && now.events.length === 1, 'what came')
  await first.close()
  const second = await open()
  await second.submit(noop, null)
  await second.events.subscribe('all', { from: 'beginning' }, again.handler)
  await until(() => again.events.length === 1, 'what came meanwhile')
  expect(now.events[0]?.seq).toBe(before.events[3]?.seq)
  expect(again.events[0]?.seq).toBeGreaterThan(before.events[3]?.seq as number)
})

test('an event with a lower number that commits later is not skipped', async ({ hf, url, query }) => {
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', {}, handler)
  const late = await transaction(url)
  await told(late, 'late')
  await hf.submit(noop, null, { tenant: 'early' })
  // the later one is there for everybody to see, but nobody may pass the one before it
  expect(await query(`select tenant from holdfast.event order by seq`)).toEqual([{ tenant: 'early' }])
  const [group] = await until(async () => {
    const groups = await hf.events.groups()
    return groups[0] && groups[0].behind >= 2 && groups
  }, 'the group is behind')
  expect(events).toEqual([])
  expect(group?.behindMs).toBeGreaterThanOrEqual(0)
  await late.query('commit')
  await until(() => events.length === 2, 'both')
  expect(events.map(({ tenant }) => tenant)).toEqual(['late', 'early'])
})

test('a reader that finds somebody writing at every look waits no longer for the next than for the first', async ({
  open,
  url,
  query,
}) => {
  // it can tell them apart only by a look between the two
  const looked = async () => {
    const [now] = await query<{ at: Date }>('select clock_timestamp() as at')
    const text = `select pid from pg_stat_activity where datname = current_database() and query like '%event_mark%' and query_start > $1 and pid <> pg_backend_pid()`
    await until(async () => (await query(text, [now?.at])).length > 0, 'the reader has looked')
  }
  // without wake-ups and with a slow poll, only its own looks can be quick
  const hf = await open({ pooled: true, pollMs: 5_000 })
  const { events, handler } = keeper()
  let writer = await transaction(url)
  await told(writer, 'first')
  await hf.events.subscribe('mine', { from: 'beginning' }, handler)
  const stepsMs: number[] = []
  for (let step = 1; step <= 28; step++) {
    await looked()
    const next = await transaction(url)
    await told(next, 'next')
    const sinceMs = performance.now()
    await writer.query('commit')
    await until(() => events.length === step, 'what was committed')
    stepsMs.push(performance.now() - sinceMs)
    await writer.end()
    writer = next
  }
  await writer.query('commit')
  expect(Math.max(...stepsMs)).toBeLessThan(1_000)
})

test('a transaction that writes for long in another database of the server holds nobody back', async ({ hf }) => {
  const other = await newDatabase('empty')
  const long = await transaction(other.url)
  await long.query(`create table a_long_import (id int)`)
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', {}, handler)
  await hf.submit(noop, null)
  await until(() => events.length === 1, 'the event')
  await long.end()
  await other.drop()
})

test('a group that begins at now begins there although somebody has been writing for long', async ({ hf, url }) => {
  await hf.submitMany(noop, [{ input: null }, { input: null }])
  const long = await transaction(url)
  await told(long, 'long')
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', { from: 'now' }, handler)
  await hf.submit(noop, null, { tenant: 'after' })
  await long.query('commit')
  await until(() => events.length > 0, 'what came after')
  expect(events.map(({ tenant }) => tenant)).toEqual(['after'])
})

test('a number that was drawn and never used holds nobody up', async ({ hf, url }) => {
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', {}, handler)
  const undone = await transaction(url)
  await told(undone, 'undone')
  await undone.query('rollback')
  await hf.submit(noop, null)
  await until(() => events.length === 1, 'the event')
})

test('a transaction that writes for long is reported, delays what is behind it, and loses nothing', async ({
  open,
  url,
}) => {
  const warnings: unknown[][] = []
  const log = { debug() {}, info() {}, warn: (...line: unknown[]) => void warnings.push(line), error() {} }
  const hf = await open({ log })
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', {}, handler)
  const long = await transaction(url)
  await long.query(`create table a_long_import (id int)`)
  await hf.submit(noop, null)
  const [facts] = await until(
    () => warnings.find(([, message]) => String(message).includes('long-running transaction holds back')),
    'the report',
    30_000,
  )
  const [{ pid }] = (await long.query('select pg_backend_pid() as pid')).rows
  expect(facts).toMatchObject({ group: 'mine', pid })
  expect(events).toEqual([])
  await long.query('commit')
  await until(() => events.length === 1, 'the event')
}, 40_000)

test('the events of a job keep their order although transactions with lower ids write after those with higher ones', async ({
  hf,
  url,
  given,
  query,
}) => {
  const { events, handler } = keeper()
  const { id } = await given.queued()
  await hf.events.subscribe('mine', {}, handler)
  // has its id first, and writes about the job last
  const first = await transaction(url)
  await first.query(`select pg_current_xact_id()`)
  const second = await transaction(url)
  const event = (type: string) =>
    `insert into holdfast.event_log (type, job_id, kind, tenant) values ('${type}', '${id}', 'k', 'default')`
  await second.query(event('job.retried'))
  await second.query('commit')
  await first.query(event('job.cancelled'))
  await first.query('commit')
  await until(() => events.length === 2, 'both events')
  expect(events.map(({ type }) => type)).toEqual(['job.retried', 'job.cancelled'])
  const rows = await query<{ txid: string }>(
    `select txid::text from holdfast.event where type in ('job.retried', 'job.cancelled') order by seq`,
  )
  expect(BigInt(rows[0]?.txid as string)).toBeGreaterThan(BigInt(rows[1]?.txid as string))
})

test('a group reads only the types that it wants, by name or by pattern', async ({ open }) => {
  const hf = await open({ jobs: [noop] })
  const [ends, all] = [keeper(), keeper()]
  await hf.events.subscribe('ends', { types: ['job.finished', 'job.failed'], from: 'beginning' }, ends.handler)
  await hf.events.subscribe('all', { types: 'job.*', from: 'beginning' }, all.handler)
  await hf.work()
  await hf.submit(noop, null)
  await until(() => ends.events.length === 1 && all.events.length === 2, 'the events')
  expect(ends.events[0]?.type).toBe('job.finished')
  const groups = await hf.events.groups()
  expect(groups.map(({ name, types }) => [name, types?.length])).toEqual([
    ['all', eventTypes.filter((type) => type.startsWith('job.')).length],
    ['ends', 2],
  ])
})

test('an event that fails is tried again, and the group waits for it', async ({ hf }) => {
  const seen: [number, number][] = []
  const second = gate()
  const handler = async ({ seq }: LogEvent, { failures }: EventContext) => {
    seen.push([seq, failures])
    if (failures === 0 && seen.length === 1) throw new Error('Not yet.')
    await second.promise
  }
  await hf.events.subscribe('mine', { backoffMs: 1 }, handler)
  const handles = await hf.submitMany(noop, [{ input: null }, { input: null }])
  expect(handles).toHaveLength(2)
  await until(() => seen.length === 2, 'the second try')
  expect((await hf.events.groups())[0]?.failing).toMatchObject([{ seq: seen[0]?.[0], failures: 1, error: 'Not yet.' }])
  second.open()
  await until(() => seen.length === 3, 'the next event')
  expect(seen.map(([, failures]) => failures)).toEqual([0, 1, 0])
  expect(seen[1]?.[0]).toBe(seen[0]?.[0])
})

test('a poison event is parked with its error and blocks nobody; replayed, it is handled or parked again', async ({
  hf,
}) => {
  const handled: number[] = []
  let isRepaired = false
  const handler = ({ seq, tenant }: LogEvent) => {
    if (tenant === 'poison' && !isRepaired) throw new Error('It cannot be read.')
    handled.push(seq)
  }
  await hf.events.subscribe('mine', { backoffMs: 1, failures: 3 }, handler)
  await hf.submit(noop, null, { tenant: 'poison' })
  await hf.submit(noop, null, { tenant: 'good' })
  await until(() => handled.length === 1, 'the good one')
  const [parked] = await hf.events.parked('mine')
  expect(parked).toMatchObject({
    error: 'It cannot be read.',
    failures: 3,
    replayAt: null,
    event: { tenant: 'poison' },
  })
  expect((await hf.events.groups())[0]).toMatchObject({ parked: 1, failing: [] })
  expect(await hf.events.replay('mine', { parked: 'all' })).toBe(1)
  await until(async () => (await hf.events.parked('mine'))[0]?.failures === 6, 'parked again')
  isRepaired = true
  expect(await hf.events.replay('mine', { parked: parked?.event.seq as number })).toBe(1)
  await until(async () => (await hf.events.parked('mine')).length === 0, 'handled after all')
  expect(handled).toContain(parked?.event.seq)
})

test('an error that the database could not hold parks its event too', async ({ hf }) => {
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', { failures: 2, backoffMs: 1 }, (event) => {
    if (event.tenant === 'poison') throw new Error('no \0 and no \ud800 here')
    handler(event)
  })
  await hf.submit(noop, null, { tenant: 'poison' })
  await hf.submit(noop, null)
  await until(() => events.length === 1, 'the group goes on')
  expect(await hf.events.parked('mine')).toMatchObject([{ error: 'no \ufffd and no \ufffd here', failures: 2 }])
})

test('a permanent error parks at once, and a handler that does not end in time counts as failed', async ({ hf }) => {
  let calls = 0
  const handler = async ({ tenant }: LogEvent, { signal }: EventContext) => {
    calls += 1
    if (tenant === 'permanent') throw new PermanentError('Never.')
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await new Promise(() => {})
  }
  await hf.events.subscribe('mine', { failures: 2, backoffMs: 1, timeoutMs: 20 }, handler)
  await hf.submit(noop, null, { tenant: 'permanent' })
  await hf.submit(noop, null, { tenant: 'hangs' })
  await until(async () => (await hf.events.parked('mine')).length === 2, 'both parked')
  expect((await hf.events.parked('mine')).map(({ error, failures }) => [error, failures])).toEqual([
    ['Never.', 1],
    ['The handler did not end within 20 ms.', 2],
  ])
  expect(calls).toBe(3)
})

test('a group can be sent back to the beginning, to a time, or to a place, and forward to now', async ({ hf }) => {
  const { events, handler, seqs } = keeper()
  await hf.events.subscribe('mine', { from: 'beginning', partitions: 2 }, handler)
  const handles = await hf.submitMany(
    noop,
    Array.from({ length: 6 }, () => ({ input: null })),
  )
  await until(() => events.length === handles.length, 'the first round')
  const all = seqs().toSorted((a, b) => a - b)
  expect(await hf.events.replay('mine', { from: 'beginning' })).toBe(2)
  await until(() => events.length === 12, 'the second round')
  expect(
    seqs()
      .slice(6)
      .toSorted((a, b) => a - b),
  ).toEqual(all)
  await hf.events.replay('mine', { from: all[2] as number })
  await until(() => events.length === 15, 'from a place on')
  await hf.events.replay('mine', { from: new Date(0) })
  await until(() => events.length === 21, 'from a time on')
})

test('stopping lets the handler finish what it has begun, and gives the rest to the next reader at once', async ({
  open,
}) => {
  const [one, two] = [await open(), await open({ readerLeaseMs: 600_000 })]
  const [begun, end] = [gate(), gate()]
  const seen: number[] = []
  const slow = async ({ seq }: LogEvent) => {
    begun.open()
    await end.promise
    seen.push(seq)
  }
  const subscription = await two.events.subscribe('mine', { from: 'beginning' }, slow)
  await two.submitMany(
    noop,
    Array.from({ length: 5 }, () => ({ input: null })),
  )
  await begun.promise
  const stopped = subscription.stop()
  end.open()
  await stopped
  expect(seen).toHaveLength(1)
  const rest = keeper()
  await one.events.subscribe('mine', { from: 'beginning' }, rest.handler)
  await until(() => rest.events.length === 4, 'the rest')
  expect(rest.seqs()).not.toContain(seen[0])
})

test('a handler that takes longer than the lease is alone with its event, while its reader stops or shares', async ({
  open,
  query,
}) => {
  const [one, two] = [await open({ readerLeaseMs: 300 }), await open({ readerLeaseMs: 300 })]
  await one.submitMany(
    noop,
    Array.from({ length: 40 }, () => ({ input: null })),
  )
  const [end, begun, others] = [gate(), keeper(), keeper()]
  const slow = async (event: LogEvent, { signal }: EventContext) => {
    begun.handler(event)
    await end.promise
    aborted.push(signal.aborted)
  }
  const aborted: boolean[] = []
  const options = { from: 'beginning', partitions: 2 } as const
  const subscription = await one.events.subscribe('mine', options, slow)
  await until(() => begun.events.length === 2, 'both partitions are read')
  await two.events.subscribe('mine', options, others.handler)
  const leases = `select lease_until - interval '300 ms' as at from holdfast.event_reader order by started_at limit 1`
  const renewed = async (after: number) => {
    const [row] = await query<{ at: Date }>(leases)
    return row !== undefined && row.at.getTime() > after
  }
  await until(() => renewed(Date.now() - 100), 'it lives')
  const sharedAt = Date.now()
  await until(() => renewed(sharedAt + 700), 'the lease is renewed while a partition is given back')
  const stopping = subscription.stop()
  const stoppedAt = Date.now()
  await until(() => renewed(stoppedAt + 700), 'the lease is renewed while the reader stops')
  expect(others.events).toEqual([])
  end.open()
  await stopping
  await until(() => others.events.length === 38, 'the rest')
  expect(aborted).toEqual([false, false])
  expect(others.seqs()).not.toContain(begun.seqs()[0])
  expect(others.seqs()).not.toContain(begun.seqs()[1])
})

test('a listener that starts while the last one stops is woken', async ({ url, query }) => {
  const { hear } = makeWakeups({ url, isPooled: false, onError: () => {} })
  const opened = gate()
  const unhear = hear(() => opened.open())
  await opened.promise
  const stopping = unhear()
  let news = 0
  const stop = hear(() => void news++)
  await stopping
  await until(async () => {
    await query(`notify holdfast_event`)
    return news > 0
  }, 'news')
  await stop()
})

test('partitions are shared evenly by the readers that live, and the events of a job stay in one', async ({ open }) => {
  const [one, two] = [await open(), await open()]
  const seen = new Map<string, Set<number>>()
  const handler = ({ jobId }: LogEvent, { partition }: EventContext) =>
    void seen.set(jobId as string, (seen.get(jobId as string) ?? new Set()).add(partition))
  await one.events.subscribe('mine', { partitions: 4, from: 'beginning' }, handler)
  const holders = async () => (await one.events.groups())[0]?.held === 4 && (await one.events.groups())[0]
  await until(holders, 'one reader holds all')
  await two.events.subscribe('mine', { partitions: 4 }, handler)
  const shares = `select count(*)::int as n from holdfast.event_cursor where reader_id is not null group by reader_id order by 1`
  const { rows } = await until(async () => {
    const client = new pg.Client(one.url)
    await client.connect()
    const answer = await client.query(shares)
    await client.end()
    return answer.rows.length === 2 && answer.rows[0].n === 2 && answer
  }, 'both hold two')
  expect(rows).toEqual([{ n: 2 }, { n: 2 }])
  const handles = await one.submitMany(
    noop,
    Array.from({ length: 40 }, () => ({ input: null })),
  )
  for (const { id } of handles) await one.cancel(id)
  await until(() => seen.size === 40, 'all events')
  expect([...seen.values()].every((partitions) => partitions.size === 1)).toBe(true)
  expect(new Set([...seen.values()].flatMap((partitions) => [...partitions])).size).toBe(4)
})

test('watching shows what comes, from now or from a while back, and only what was asked for', async ({ hf }) => {
  const before = await hf.submit(noop, null, { tenant: 'a' })
  await hf.submit(noop, null, { tenant: 'b' })
  const past: LogEvent[] = []
  for await (const event of hf.events.watch({ back: 10, follow: false })) past.push(event)
  expect(past.map(({ tenant }) => tenant)).toEqual(['a', 'b'])
  const stop = new AbortController()
  const watching = hf.events.watch({ types: 'job.cancelled', tenant: 'a', job: before.id, signal: stop.signal })
  const next = watching.next()
  await hf.cancel(before.id)
  expect((await next).value).toMatchObject({ type: 'job.cancelled', jobId: before.id })
  stop.abort()
  expect((await watching.next()).done).toBe(true)
})

test.for([
  ['an unknown type', { types: 'job.exploded' }, 'mine', 'event_type_unknown'],
  ['an empty list of types', { types: [] }, 'mine', 'event_type_unknown'],
  ['a name with a space', {}, 'my group', 'group_invalid'],
  ['no partition', { partitions: 0 }, 'mine', 'option_invalid'],
  ['too many partitions', { partitions: 65 }, 'mine', 'option_invalid'],
  ['a beginning that is none', { from: 'yesterday' as 'now' }, 'mine', 'option_invalid'],
  ['no time at all', { timeoutMs: 0 }, 'mine', 'option_invalid'],
] as const)('%s is refused', async ([, options, name, code], { hf }) => {
  await expect(hf.events.subscribe(name, options, () => {})).rejects.toMatchObject({ code })
  expect(await hf.events.groups()).toEqual([])
})

test('what makes no sense is refused with a sentence, before it reaches the database', async ({ hf }) => {
  const odd = (value: unknown) => value as never
  await hf.events.subscribe('mine', {}, () => {})
  const calls = [
    async () => hf.events.watch({ back: -1 }),
    async () => hf.events.watch({ back: 1.5 }),
    async () => hf.events.watch({ after: Number.NaN }),
    async () => hf.events.watch(odd(null)),
    () => hf.events.parked('mine', { limit: -1 }),
    () => hf.events.parked('mine', { after: odd('x') }),
    () => hf.events.replay('mine', odd(undefined)),
    () => hf.events.replay('mine', { parked: 1.5 }),
    () => hf.events.replay('mine', { from: new Date(-8.64e15) }),
    () => hf.events.replay('mine', { from: new Date(Number.NaN) }),
    () => hf.events.subscribe('mine', odd(undefined), () => {}),
    () => hf.webhooks.create(odd(undefined)),
    () => hf.webhooks.create({ url: 'https://example.com', items: odd('yes') }),
    () => hf.webhooks.update('01890a5d-ac96-774b-bcce-b302099a8057', odd(undefined)),
    () => hf.webhooks.replayAll({ since: new Date(-8.64e15) }),
    () => hf.webhooks.replayAll({ since: new Date(Number.NaN) }),
  ]
  for (const call of calls) await expect(call(), String(call)).rejects.toMatchObject({ code: 'option_invalid' })
})

test('a group keeps its number of partitions; one that is not there can be neither replayed nor forgotten', async ({
  hf,
}) => {
  await hf.events.subscribe('mine', { partitions: 2 }, () => {})
  await expect(hf.events.subscribe('mine', { partitions: 3 }, () => {})).rejects.toMatchObject({
    code: 'group_invalid',
  })
  for (const wrong of [
    () => hf.events.replay('other', { parked: 'all' }),
    () => hf.events.replay('other', { from: 'beginning' }),
    () => hf.events.parked('other'),
    () => hf.events.forget('other'),
  ])
    await expect(wrong()).rejects.toMatchObject({ code: 'group_not_found' })
})

test('a group that is forgotten while it is read ends in peace, and made anew it is read again', async ({
  hf,
  query,
}) => {
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', {}, handler)
  await hf.submit(noop, null)
  await until(() => events.length === 1, 'the first')
  await hf.events.forget('mine')
  await until(async () => (await query(`select from holdfast.event_cursor`)).length === 0, 'its cursors are gone')
  await hf.submit(noop, null)
  const again = keeper()
  await hf.events.subscribe('mine', { from: 'beginning' }, again.handler)
  await until(() => again.events.length + events.length >= 3, 'both, once more')
  expect((await query(`select from holdfast.event_reader`)).length).toBeLessThanOrEqual(2)
})

const aged = (days: number) =>
  `update holdfast.event_partition set from_at = from_at - interval '${days} days', to_at = to_at - interval '${days} days'`
const aLazyGroup = [
  `insert into holdfast.event_group (name, partitions) values ('lazy', 1)`,
  `insert into holdfast.event_cursor (group_name, partition, seq) values ('lazy', 0, 0)`,
]

test('a reader whose group was forgotten is given nothing that it did not ask for', async ({ open }) => {
  // so rare a beat that the reader does not hear of it before it reads on
  const hf = await open({ readerLeaseMs: 60_000, readerBeatMs: 20_000 })
  const other = keeper()
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', { types: 'job.failed' }, handler)
  await hf.events.subscribe('other', {}, other.handler)
  await hf.submit(noop, null)
  await until(() => other.events.length === 1, 'both read')
  await hf.events.forget('mine')
  await hf.submit(noop, null)
  await until(() => other.events.length === 2, 'the other group has it')
  // two more turns of whoever reads
  for (let seen = 3; seen <= 4; seen++) {
    await hf.submit(noop, null)
    await until(() => other.events.length === seen, 'and the next')
  }
  expect(events).toEqual([])
})

test('old partitions of the log are dropped whole, but never one that a group has not read', async ({
  store,
  query,
}) => {
  const [, drop] = logDuties({ retentionMs: 30 * day, capMs: 90 * day })
  await told({ query }, 'default')
  for (const text of [...aLazyGroup, aged(40)]) await query(text)
  const [first] = (await drop?.run(store))?.notes ?? []
  expect(first).toMatchObject({
    isError: true,
    message: expect.stringContaining('not read'),
    facts: { groups: ['lazy'] },
  })
  expect(await query(`select from holdfast.event`)).toHaveLength(1)
  await query(`update holdfast.event_cursor set seq = 1`)
  const [second] = (await drop?.run(store))?.notes ?? []
  expect(second).toMatchObject({ isError: false, facts: { partition: first?.facts.partition } })
  expect(await query(`select to_regclass('holdfast.' || $1) as there`, [first?.facts.partition])).toEqual([
    { there: null },
  ])
  expect(await query(`select from holdfast.event`)).toHaveLength(0)
})

test('a partition that somebody dropped by hand does not keep later ones from being dropped', async ({
  store,
  query,
}) => {
  const [, drop] = logDuties({ retentionMs: 30 * day, capMs: 90 * day })
  await query(aged(40))
  const [byHand, ...later] = await query<{ name: string }>(`select name from holdfast.event_partition order by from_at`)
  await query(`drop table holdfast.${byHand?.name}`)
  const notes = (await drop?.run(store))?.notes ?? []
  expect(notes.map(({ facts }) => facts.partition)).toEqual(later.map(({ name }) => name))
  expect(later).not.toHaveLength(0)
  expect(await query(`select from holdfast.event_partition where dropped_at is null`)).toHaveLength(0)
})

test('past the cap a partition is dropped whoever has not read it, loudly, and the group goes on behind it', async ({
  hf,
  store,
  query,
}) => {
  const [lay, drop] = logDuties({ retentionMs: 30 * day, capMs: 90 * day })
  await told({ query }, 'default')
  for (const text of [...aLazyGroup, aged(100)]) await query(text)
  const [note] = (await drop?.run(store))?.notes ?? []
  expect(note).toMatchObject({
    isError: true,
    message: expect.stringContaining('lose its events'),
    facts: { groups: ['lazy'] },
  })
  expect(await query(`select seq from holdfast.event_cursor`)).toEqual([{ seq: '1' }])
  await lay?.run(store)
  const { events, handler } = keeper()
  await hf.events.subscribe('lazy', {}, handler)
  await hf.submit(noop, null)
  await until(() => events.length === 1, 'what came after')
})

test('past the cap a group loses nothing of later partitions, whatever the order of their numbers', async ({
  hf,
  store,
  query,
}) => {
  const [, drop] = logDuties({ retentionMs: 30 * day, capMs: 90 * day })
  await told({ query }, 'default')
  // drawn before the last number of the old partition, by a transaction that began after it
  await query(`select nextval('holdfast.event_seq')`)
  await told({ query }, 'default')
  for (const text of [...aLazyGroup, aged(100)]) await query(text)
  await query(
    `insert into holdfast.event_log (seq, at, type, tenant) values (2, now() + interval '10 days', 'job.log', 'later')`,
  )
  await drop?.run(store)
  const { handler, seqs } = keeper()
  await hf.events.subscribe('lazy', {}, handler)
  await until(() => seqs().length === 1, 'what is left')
  expect(seqs()).toEqual([2])
})

test('partitions are laid ahead, and what came while none was laid is moved in', async ({ store, query }) => {
  const [lay] = logDuties({ retentionMs: 30 * day, capMs: 90 * day })
  const laid = await query<{ name: string }>(`delete from holdfast.event_partition returning name`)
  for (const { name } of laid) await query(`drop table holdfast."${name}"`)
  await told({ query }, 'default')
  expect(await query(`select from holdfast.event_rest`)).toHaveLength(1)
  await lay?.run(store)
  expect(await query(`select from holdfast.event_rest`)).toHaveLength(0)
  expect(await query(`select from holdfast.event`)).toHaveLength(1)
  expect(await query(`select from holdfast.event_partition where to_at > now() + interval '3 days'`)).not.toHaveLength(
    0,
  )
  await lay?.run(store)
  expect(await query(`select from holdfast.event_partition where from_at > now() + interval '6 days'`)).toHaveLength(0)
})
