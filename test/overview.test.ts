import { randomUUID } from 'node:crypto'
import { defineJob, type ListOptions } from 'holdfast'
import { ladder } from '#holdfast/reaper/recovery-bound'
import { recordRefusals } from '#holdfast/settle/settle.sql'
import { swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'
import { makeWait, queuedCrowd } from './places.ts'
import { makeWire } from './wire.ts'

const nobody = '01890a5d-ac96-774b-bcce-b302099a8057'

test('the state of a job is told alone, and only to its tenant', async ({ hf, given }) => {
  const { id } = await given.queued({ tenant: 'acme' })
  expect(await hf.state(id)).toBe('queued')
  expect(await hf.state(id, { tenant: 'acme' })).toBe('queued')
  expect(await hf.state(id, { tenant: 'other' })).toBeNull()
  expect(await hf.state(nobody)).toBeNull()
  await expect(hf.state('nonsense')).rejects.toMatchObject({ code: 'id_invalid' })
})

test('a timeline is read page by page', async ({ hf, given }) => {
  const { id } = await given.finished()
  const whole = await hf.timeline(id)
  expect(whole.map(({ type }) => type)).toEqual(['job.submitted', 'job.finished'])
  const [first] = await hf.timeline(id, { limit: 1 })
  expect(first).toEqual(whole[0])
  expect(await hf.timeline(id, { after: first?.seq as number })).toEqual(whole.slice(1))
  for (const options of [{ limit: 0 }, { limit: 10_001 }, { limit: 1.5 }, { after: -1 }, { after: Number.NaN }])
    await expect(hf.timeline(id, options)).rejects.toMatchObject({ code: 'option_invalid' })
})

test('a queue tells what is due, scheduled, running and waiting in it, and who serves it', async ({
  hf,
  given,
  query,
}) => {
  await given.queued({ queue: 'mixed' })
  await given.queued({ queue: 'mixed', kind: 'other', priority: 4, tenant: 'acme' })
  await given.queued({ queue: 'mixed', delayMs: 60_000 })
  await given.running({ queue: 'mixed', kind: 'third', tenant: 'acme' })
  const waiting = await given.queued({ queue: 'mixed' })
  await makeWait(query, waiting.id)
  await query(`update holdfast.ready set run_at = run_at - interval '1 h' where kind = 'other'`)
  await hf.pauseQueue('mixed')
  await hf.pauseQueue('idle')
  await hf.resumeQueue('idle')
  const [idle, mixed, ...others] = await hf.queues()
  expect(others).toEqual([])
  expect(idle).toEqual({
    name: 'idle',
    isPaused: false,
    pausedAt: null,
    pausedBy: null,
    pauseReason: null,
    queued: 0,
    scheduled: 0,
    running: 0,
    waiting: 0,
    oldestDueMs: null,
    workers: 0,
    isCapped: false,
  })
  expect(mixed).toMatchObject({ name: 'mixed', isPaused: true, queued: 2, scheduled: 1, running: 1, waiting: 1 })
  expect(mixed?.pausedAt).toBeInstanceOf(Date)
  expect(mixed?.oldestDueMs).toBeGreaterThan(3_599_000)
})

test('with a tenant, only its jobs are counted', async ({ hf, given }) => {
  await given.queued({ queue: 'shared', tenant: 'acme' })
  await given.queued({ queue: 'shared', tenant: 'other' })
  await given.queued({ queue: 'shared', tenant: 'other', delayMs: 60_000 })
  await given.running({ queue: 'shared', kind: 'held', tenant: 'other' })
  await hf.pauseQueue('shared')
  const of = async (tenant: string) => (await hf.queues({ tenant }))[0]
  expect(await of('acme')).toMatchObject({ queued: 1, scheduled: 0, running: 0 })
  expect(await of('other')).toMatchObject({ queued: 1, scheduled: 1, running: 1 })
  // that somebody paused it does not make its name known to whoever has nothing in it
  expect(await hf.queues({ tenant: 'nobody' })).toEqual([])
  await expect(hf.queues({ tenant: 'a\0b' })).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(hf.queues('acme' as never)).rejects.toMatchObject({ code: 'option_invalid' })
})

test('a queue that only another tenant uses is not shown to a tenant', async ({ hf, given }) => {
  await given.queued({ queue: 'secret-project', tenant: 'other' })
  await given.running({ queue: 'secret-work', tenant: 'other' })
  expect(await hf.queues({ tenant: 'acme' })).toEqual([])
  expect((await hf.queues({ tenant: 'other' })).map(({ name }) => name)).toEqual(['secret-project', 'secret-work'])
})

test('a queue with more jobs than are counted says so', async ({ hf, query }) => {
  await query(
    queuedCrowd({
      count: 120_000,
      kind: `'bulk-' || n % 2`,
      queue: `'bulk'`,
      runAt: `now() - n % 1000 * interval '1 ms'`,
    }),
  )
  const startedMs = performance.now()
  const [bulk] = await hf.queues()
  console.log(`120,000 jobs counted in ${Math.round(performance.now() - startedMs)} ms`)
  expect(bulk).toMatchObject({ queued: 100_000, scheduled: 0, isCapped: true })
})

test('sessions are listed with what they hold, the living and the ended', async ({ open }) => {
  const entered = gate()
  const held = gate()
  const hold = defineJob('hold', {
    queue: 'slow',
    run: async () => {
      entered.open()
      await held.promise
    },
  })
  const hf = await open({ ...swift, jobs: [hold], supervisor: 'boss' })
  const working = await hf.work({ concurrency: 3 })
  await hf.submit(hold, null)
  await entered.promise
  const [session] = await until(async () => {
    const living = await hf.sessions()
    return living[0]?.isLocked && living
  }, 'the session holds its lock')
  expect(session).toMatchObject({
    id: working.sessionId(),
    pid: process.pid,
    supervisor: 'boss',
    endedAt: null,
    endedBy: null,
    kinds: ['hold'],
    queues: ['slow'],
    concurrency: 3,
    running: 1,
    isLocked: true,
    isLive: true,
  })
  expect(session?.leaseUntil.getTime()).toBeGreaterThan(session?.heartbeatAt.getTime() as number)
  expect(await hf.queues()).toMatchObject([{ name: 'slow', running: 1, workers: 1 }])
  expect(await hf.sessions({ ended: true })).toEqual([])
  held.open()
  await working.stop()
  expect(await hf.sessions()).toEqual([])
  const [ended] = await hf.sessions({ ended: true })
  expect(ended).toMatchObject({ id: session?.id, endedBy: 'itself', running: 0, isLocked: false, isLive: false })
  expect(await hf.queues()).toMatchObject([{ name: 'slow', workers: 0 }])
})

test('sessions are read page by page, and one whose lease has run out is not live', async ({ hf, given }) => {
  const ids = [await given.session(), await given.session(), await given.session({ leaseMs: -1 })]
  const [last, ...others] = await hf.sessions()
  expect(last).toMatchObject({ id: ids[2], isLive: false, isLocked: false })
  expect(others.map(({ id }) => id)).toEqual([ids[1], ids[0]])
  expect(await hf.sessions({ before: ids[2] as number, limit: 1 })).toMatchObject([{ id: ids[1] }])
  for (const options of [{ limit: 0 }, { limit: 1001 }, { before: -1 }, { before: 'x' }, { ended: 'yes' }, 'living'])
    await expect(hf.sessions(options as never)).rejects.toMatchObject({ code: 'option_invalid' })
})

test('recovery tells the leader, the bound, and what was revived or refused lately', async ({ open, given, store }) => {
  const hf = await open(swift)
  expect(await hf.recovery()).toMatchObject({ leader: null, revivals: [], refusals: [] })
  const lost = await given.attemptOfDeadSession({ tenant: 'acme' })
  const killer = await given.attemptOfDeadSession({ crashBudget: 1 })
  await hf.reap()
  const told = await until(async () => {
    const now = await hf.recovery()
    return now.revivals.length === 2 && now.leader?.sweptAt && now
  }, 'both orphans are moved, and a sweep is over')
  expect(told.leader).toMatchObject({ term: 1, isLive: true, sweepMs: expect.any(Number) })
  expect(told.boundMs).toBe(Math.max(...told.ladder.slice(0, 3).map(({ boundMs }) => boundMs)))
  expect(told.ladder).toEqual(ladder(hf.config))
  expect(told.revivals.find(({ job }) => job === lost.id)).toMatchObject({
    type: 'job.revived',
    kind: 'sample',
    tenant: 'acme',
    attempt: 1,
    data: { rung: 'lease ran out', crashes: 1 },
  })
  expect(told.revivals.find(({ job }) => job === killer.id)).toMatchObject({ type: 'job.quarantined' })
  await store.run(recordRefusals, { fences: [lost], sessionId: lost.sessionId, write: 'finish' })
  expect((await hf.recovery()).refusals).toEqual([
    { at: expect.any(Date), job: lost.id, attempt: 1, session: lost.sessionId, write: 'finish' },
  ])
})

test('jobs are listed by the time of their submit', async ({ hf, given, query }) => {
  const [first, second] = [await given.queued(), await given.queued()]
  const at = async (id: string) => {
    const [row] = await query<{ ms: number }>(
      `select ('x' || left(replace($1, '-', ''), 12))::bit(48)::bigint::float8 as ms`,
      [id],
    )
    return new Date(row?.ms as number)
  }
  const ids = async (options: { since?: Date; until?: Date; before?: string }) =>
    (await hf.list(options)).map(({ id }) => id)
  const past = new Date(Date.now() - 3_600_000)
  expect(await ids({ since: past })).toEqual([second.id, first.id])
  expect(await ids({ since: await at(second.id), before: second.id })).toEqual(
    (await at(first.id)).getTime() === (await at(second.id)).getTime() ? [first.id] : [],
  )
  expect(await ids({ until: await at(first.id) })).toEqual([])
  expect(await ids({ until: new Date(Date.now() + 60_000), before: second.id })).toEqual([first.id])
  expect(await ids({ until: past, before: second.id })).toEqual([])
  for (const options of [{ since: 'today' }, { until: new Date(Number.NaN) }, 'all'])
    await expect(hf.list(options as never)).rejects.toMatchObject({ code: 'option_invalid' })
})

test('a list of what is rare looks further in bounded steps, and one of running jobs looks at nothing else', async ({
  url,
  open,
  given,
  query,
}) => {
  const wire = await makeWire(url)
  const hf = await open({ url: wire.url })
  const rare = await hf.submit(defineJob('rare', { run: () => null }), null)
  const { id: running } = await given.running()
  await query(queuedCrowd({ count: 20_000, id: `('ffffffff-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid` }))
  const asked = async (options: ListOptions) => {
    const from = wire.statements.length
    const ids = (await hf.list(options)).map(({ id }) => id)
    return { ids, statements: wire.statements.slice(from).filter((name) => name.includes('.page')) }
  }
  const { ids, statements } = await asked({ kind: 'rare', limit: 5 })
  expect(ids).toEqual([rare.id])
  const looks = statements.filter((name) => name === 'job.page_live')
  expect(looks.length).toBeGreaterThan(3)
  expect(await asked({ state: 'running' })).toEqual({ ids: [running], statements: ['job.page_running'] })
})

test('throughput counts what was submitted, finished and failed since the last call', async ({ hf, given, query }) => {
  await given.finished()
  const before = await hf.throughput()
  expect(before).toMatchObject({ submitted: 0, finished: 0, failed: 0 })
  await given.finished('succeeded')
  await given.finished('partial')
  await given.finished('failed')
  await given.finished('cancelled')
  await given.queued()
  const after = await hf.throughput(before)
  expect(after).toMatchObject({ submitted: 5, finished: 2, failed: 1 })
  expect(await hf.throughput(after)).toMatchObject({ seq: after.seq, submitted: 0, finished: 0, failed: 0 })
  await query(`
    insert into holdfast.event_log (type, state, job_id, kind, tenant)
    select 'job.submitted', 'queued', gen_random_uuid(), 'sample', 'default' from generate_series(1, 70000)`)
  // more than are looked at: taken for all of the same kind
  expect((await hf.throughput(after)).submitted).toBe(70_000)
  await expect(hf.throughput({ seq: -1 } as never)).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(hf.throughput(7 as never)).rejects.toMatchObject({ code: 'option_invalid' })
})

test('the backlog of webhooks counts what is to be sent and what was given up', async ({ hf, query }) => {
  const states = ['pending', 'pending', 'dead', 'delivered']
  for (const [index, state] of states.entries())
    await query(
      `insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, ended_at)
      values ($1, 'x', 'job.failed', $2, 'lane', $3, '', $4)`,
      [index, index === 0 ? 'acme' : 'other', state, state === 'pending' ? null : new Date()],
    )
  expect(await hf.webhooks.backlog()).toEqual({ pending: 2, dead: 1, isCapped: false })
  expect(await hf.webhooks.backlog({ tenant: 'acme' })).toEqual({ pending: 1, dead: 0, isCapped: false })
  await query(`
    insert into holdfast.delivery (event_seq, event_id, type, tenant, lane, state, body, ended_at)
    select n, 'x', 'job.failed', 'other', 'a lane before the others', 'dead', '', now() from generate_series(100, 100100) as n`)
  expect(await hf.webhooks.backlog({ tenant: 'acme' })).toMatchObject({ pending: 1, isCapped: true })
})

test('of revivals and refusals the last twenty are told, the latest first', async ({ hf, query }) => {
  await query(
    `insert into holdfast.event_log (type, job_id, kind, tenant, attempt, stage)
    select case when n % 2 = 0 then 'job.revived' else 'job.submitted' end, $1, 'sample', 'default', n, 0
    from generate_series(1, 100) as n`,
    [randomUUID()],
  )
  await query(
    `insert into holdfast.refusal (job_id, attempt, session_id, write) select $1, n, 1, 'finish' from generate_series(1, 50) as n`,
    [randomUUID()],
  )
  const { revivals, refusals } = await hf.recovery()
  expect(revivals.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 20 }, (_, index) => 100 - 2 * index))
  expect(refusals.map(({ attempt }) => attempt)).toEqual(Array.from({ length: 20 }, (_, index) => 50 - index))
})
