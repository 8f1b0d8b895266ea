import { defineJob } from 'holdfast'
import { Ticker } from '#holdfast/schedule/ticker'
import { type Member, startMember } from './crash/member.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const report = defineJob('report', { run: () => {} })
const everyMs = 2_000

interface SlotRow {
  name: string
  slot_at: Date
  what: string
  job_id: string | null
  late_ms: number
}

/** What became of all slots that are over, by schedule. */
async function decidedSlots(query: Fixtures['query']): Promise<SlotRow[][]> {
  const rows = await query<SlotRow>(
    `select name, slot_at, what, job_id, (extract(epoch from decided_at - slot_at) * 1000)::float8 as late_ms from holdfast.schedule_slot order by name, slot_at`,
  )
  const names = [...new Set(rows.map(({ name }) => name))]
  return names.map((name) => rows.filter((row) => row.name === name))
}

/** Waits until a slot begins, by the clock of the database, and returns it. */
async function slotBegins(query: Fixtures['query']): Promise<number> {
  const now = async () => {
    const [row] = await query<{ ms: number }>('select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms')
    return row?.ms as number
  }
  const slot = (Math.floor((await now()) / everyMs) + 1) * everyMs
  await until(async () => (await now()) >= slot, 'the slot begins')
  return slot
}

async function leaderOf(query: Fixtures['query'], members: readonly Member[]): Promise<Member> {
  return until(async () => {
    const [row] = await query<{ holder: string }>('select holder from holdfast.leader where lease_until > now()')
    return members.find(({ pid }) => row?.holder.split(':').at(-2) === String(pid))
  }, 'one of them leads')
}

test('a leader killed with -9 at the slot delays no slot by more than a second: none is missed, none runs twice', async ({
  url,
  query,
  open,
}) => {
  const hf = await open({ jobs: [report] })
  // a deploy: three processes, and after each kill a new one
  const members = await Promise.all([1, 2, 3].map(() => startMember({ url, role: 'reap' })))
  const names = Array.from({ length: 50 }, (_, number) => `s${String(number).padStart(2, '0')}`)
  await Promise.all(names.map((name) => hf.schedules.set(name, { kind: report, every: everyMs, overlap: 'allow' })))
  for (let kills = 0; kills < 3; kills++) {
    const leader = await leaderOf(query, members)
    await slotBegins(query)
    leader.kill('SIGKILL')
    await leader.exited
    members.splice(members.indexOf(leader), 1, await startMember({ url, role: 'reap' }))
  }
  const last = await slotBegins(query)
  const isOver = (slots: SlotRow[] = []) => (slots.at(-1)?.slot_at.getTime() ?? 0) >= last
  const areOver = (all: SlotRow[][]) => all.length === names.length && all.every(isOver)
  await until(async () => areOver(await decidedSlots(query)), 'the last slot is decided')

  const all = await decidedSlots(query)
  expect(all.length).toBe(names.length)
  for (const slots of all) {
    const times = slots.map(({ slot_at }) => slot_at.getTime())
    expect(times.slice(1).every((at, index) => at - (times[index] as number) === everyMs)).toBe(true)
    expect(slots.every(({ what, job_id }) => what === 'submitted' && job_id !== null)).toBe(true)
  }
  const slots = all.flat()
  expect(new Set(slots.map(({ job_id }) => job_id)).size).toBe(slots.length)
  expect(await query(`select from holdfast.job where kind = 'report'`)).toHaveLength(slots.length)
  const late = slots.map(({ late_ms }) => late_ms).toSorted((a, b) => a - b)
  const p99 = late[Math.floor(late.length * 0.99)] as number
  expect(p99).toBeLessThanOrEqual(1_000)
})

test('two processes that both take themselves for the leader submit each slot once', async ({ store, query, open }) => {
  const hf = await open({ jobs: [report] })
  for (const name of ['a', 'b', 'c']) await hf.schedules.set(name, { kind: report, every: '1s', overlap: 'allow' })
  const errors: unknown[] = []
  const tickers = [1, 2].map(
    () =>
      new Ticker({
        store,
        missedAfterMs: 60_000,
        isLeader: () => true,
        cancel: async () => {},
        observer: { ticked() {}, onError: (error) => errors.push(error) },
      }),
  )
  for (const ticker of tickers) await ticker.start()
  await until(async () => (await query('select from holdfast.schedule_slot')).length >= 12)
  for (const ticker of tickers) await ticker.stop()
  const slots = await query<{ job_id: string }>('select job_id from holdfast.schedule_slot')
  expect(new Set(slots.map(({ job_id }) => job_id)).size).toBe(slots.length)
  expect(await query(`select from holdfast.job where kind = 'report'`)).toHaveLength(slots.length)
  expect(errors).toEqual([])
})

test('a slot that waits for an earlier job is submitted although the process that noted it was killed with -9', async ({
  url,
  query,
  open,
}) => {
  const hf = await open({ jobs: [report] })
  const member = await startMember({ url, role: 'reap' })
  await hf.schedules.set('buffered', { kind: report, every: '1s', overlap: 'buffer' })
  await until(async () => (await hf.schedules.get('buffered')).bufferedAt !== null, 'a slot waits', 30_000)
  member.kill('SIGKILL')
  await member.exited
  const { bufferedAt, lastJob } = await hf.schedules.get('buffered')
  await hf.cancel(lastJob as string)
  await startMember({ url, role: 'reap' })
  const at = bufferedAt as Date
  await until(
    async () =>
      (await hf.schedules.history('buffered')).some((slot) => +slot.slotAt === +at && slot.what === 'submitted'),
    'the slot is submitted',
    30_000,
  )
  expect(await query(`select from holdfast.schedule_slot where what = 'submitted' and job_id is null`)).toEqual([])
}, 120_000)

test('a replaced job is cancelled although the process that was about to cancel it was killed with -9', async ({
  url,
  pool,
  query,
  open,
}) => {
  const hf = await open({ jobs: [report] })
  const member = await startMember({ url, role: 'reap' })
  await hf.schedules.set('replacing', { kind: report, every: '5s', overlap: 'cancel' })
  const first = await until(async () => (await hf.schedules.get('replacing')).lastJob, 'the first job', 30_000)
  const free = await strangerHolds(pool, 'select from holdfast.ready where job_id = $1 for update', [first])
  const replaced = `select from holdfast.schedule where $1 = any(cancel_job_ids)`
  await until(async () => (await query(replaced, [first])).length === 1, 'it is replaced', 30_000)
  member.kill('SIGKILL')
  await member.exited
  await free()
  expect(await hf.get(first as string)).toMatchObject({ state: 'queued' })
  await startMember({ url, role: 'reap' })
  await until(async () => (await hf.get(first as string))?.state === 'cancelled', 'it is cancelled', 30_000)
  await until(async () => (await query(replaced, [first])).length === 0, 'it is forgotten', 30_000)
}, 120_000)

test('a slot that comes due while nobody ticks runs once somebody does', async ({ url, query, open }) => {
  const hf = await open({ jobs: [report] })
  const member = await startMember({ url, role: 'reap' })
  await hf.schedules.set('alone', { kind: report, every: '1s' })
  await until(async () => (await query('select from holdfast.job')).length > 0)
  member.kill('SIGKILL')
  await member.exited
  await query('delete from holdfast.ready')
  const { lastJob } = await hf.schedules.get('alone')
  await until(async () => ((await hf.schedules.get('alone')).nextAt as Date) < new Date(Date.now() - 500))
  await hf.schedules.set('alone', { kind: report, every: '1s', overlap: 'allow' })
  await startMember({ url, role: 'reap' })
  await until(async () => (await hf.schedules.get('alone')).lastJob !== lastJob)
})

test('10,000 schedules that are due at the same second all run, in batches', async ({ store, query, open }) => {
  const hf = await open({ jobs: [report] })
  await hf.schedules.set('original', { kind: report, cron: '0 * * * *', tz: 'Europe/Berlin' })
  await query(`
    insert into holdfast.schedule (tenant, name, kind, queue, crash_budget, kind_priority, input, cron, tz, missed, missed_window_ms, missed_cap, overlap, next_at, due_at)
    select 'crowd', 'n' || number, kind, queue, crash_budget, kind_priority, input, cron, tz, missed, missed_window_ms, missed_cap, overlap,
      date_trunc('second', now()), date_trunc('second', now())
    from holdfast.schedule cross join generate_series(1, 10000) as number`)
  const ticker = new Ticker({
    store,
    missedAfterMs: 60_000,
    isLeader: () => true,
    cancel: async () => {},
    observer: { ticked() {}, onError() {} },
  })
  await ticker.start()
  await until(
    async () => {
      const [row] = await query<{ count: number }>(
        `select count(*)::int as count from holdfast.schedule_slot where what = 'submitted'`,
      )
      return row?.count === 10_000
    },
    'all slots are decided',
    60_000,
  )
  await ticker.stop()
})
