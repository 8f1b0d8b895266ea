import { defineJob, type LogEvent } from 'holdfast'
import { largeJson, loseLargeValues, restoreLargeValues } from './damage.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'

const noop = defineJob('noop', { run: () => {} })

/** Writes events whose data can't be read once large values are lost. */
const writeLarge = (query: Fixtures['query'], count: number) =>
  query(`insert into holdfast.event_log (type, tenant, data)
    select 'job.log', 'large', ${largeJson} from generate_series(1, ${count}) offset 0`)

/** A handler that keeps what it gets. */
function keeper() {
  const events: LogEvent[] = []
  return { events, handler: (event: LogEvent) => void events.push(event) }
}

test('an event that cannot be read is parked and keeps no other from being handled; replayed, it is read again', async ({
  hf,
  query,
}) => {
  await hf.submit(noop, null)
  await writeLarge(query, 1)
  const after = await hf.submit(noop, null)
  await loseLargeValues(query, 'holdfast.event_log')
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', { from: 'beginning' }, handler)
  await until(() => events.length === 2, 'the readable events are handled')
  expect(events.at(-1)?.jobId).toBe(after.id)
  const error = expect.stringMatching(/^It can't be read: .*missing chunk number 0/)
  expect(await hf.events.parked('mine')).toMatchObject([{ error, event: { type: 'job.log', tenant: 'large' } }])
  await hf.events.replay('mine', { parked: 'all' })
  await until(async () => (await hf.events.parked('mine'))[0]?.failures === 2, 'it still cannot be read')
  await restoreLargeValues(query, 'holdfast.event_log')
  await hf.events.replay('mine', { parked: 'all' })
  await until(async () => (await hf.events.parked('mine')).length === 0, 'it is handled after all')
  expect(events.at(-1)).toMatchObject({ type: 'job.log', data: { text: expect.stringMatching(/^\w{6400}$/) } })
})

test('a thousand events that cannot be read keep a good one behind them only for a while', async ({ hf, query }) => {
  await writeLarge(query, 1_000)
  const good = await hf.submit(noop, null)
  await loseLargeValues(query, 'holdfast.event_log')
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', { from: 'beginning' }, handler)
  await until(() => events.length === 1, 'the good one is handled', 60_000)
  expect(events[0]?.jobId).toBe(good.id)
  expect((await hf.events.groups())[0]).toMatchObject({ parked: 1_000 })
}, 90_000)

test('an error that no event causes parks none of them, and all are handled when it is over', async ({
  open,
  query,
}) => {
  const errors: string[] = []
  const note = (_: unknown, text?: string) => void errors.push(text ?? '')
  const hf = await open({ log: { debug() {}, info() {}, warn: note, error: note } })
  await hf.submit(noop, null)
  await hf.submit(noop, null)
  await query('alter view holdfast.event rename to whole_event')
  const { events, handler } = keeper()
  await hf.events.subscribe('mine', { from: 'beginning' }, handler)
  await until(() => errors.length > 0, 'its reads fail')
  const [{ term } = {}] = await query<{ term: string }>(
    `select term from holdfast.event_cursor where group_name = 'mine'`,
  )
  await query(`update holdfast.event_cursor set term = term + 1 where group_name = 'mine'`)
  const isTried = async () =>
    (await query('select from holdfast.event_cursor where term > $1::bigint + 1', [term])).length > 0
  await until(isTried, 'it has begun again')
  expect(await hf.events.parked('mine')).toEqual([])
  await query('alter view holdfast.whole_event rename to event')
  await until(() => events.length === 2, 'both are handled')
})

test('a parked event that cannot be read keeps neither another replay nor new events from being handled', async ({
  hf,
  query,
}) => {
  const { events, handler } = keeper()
  let isRepaired = false
  await hf.events.subscribe('mine', { failures: 1 }, (event) => {
    if (!isRepaired) throw new Error('Not yet.')
    handler(event)
  })
  await writeLarge(query, 1)
  const small = await hf.submit(noop, null)
  await until(async () => (await hf.events.parked('mine')).length === 2, 'both are parked')
  await loseLargeValues(query, 'holdfast.parked_event')
  isRepaired = true
  await hf.events.replay('mine', { parked: 'all' })
  await until(() => events.length === 1, 'the other one is replayed')
  const fresh = await hf.submit(noop, null)
  await until(() => events.length === 2, 'a new event is handled')
  expect(events.map(({ jobId }) => jobId)).toEqual([small.id, fresh.id])
  expect(await query('select failures, replay_at, error from holdfast.parked_event')).toMatchObject([
    { failures: 2, replay_at: null, error: expect.stringContaining('missing chunk number 0') },
  ])
})

test('pages and watches show an event whose data cannot be read without it, and go on', async ({ hf, query }) => {
  await hf.submit(noop, null)
  await writeLarge(query, 3)
  const last = await hf.submit(noop, null)
  await loseLargeValues(query, 'holdfast.event_log')
  const watched: LogEvent[] = []
  for await (const event of hf.events.watch({ after: 0, follow: false })) watched.push(event)
  expect(watched.map(({ type, data }) => [type, data])).toEqual([
    ['job.submitted', null],
    ['job.log', null],
    ['job.log', null],
    ['job.log', null],
    ['job.submitted', null],
  ])
  const paged: LogEvent[] = []
  for (let after: number | null = 0; after !== null; ) {
    const page = await hf.events.page({ after })
    paged.push(...page.events)
    after = page.next
  }
  expect(paged.map(({ seq }) => seq)).toEqual(watched.map(({ seq }) => seq))
  expect(paged.at(-1)?.jobId).toBe(last.id)
})
