import { migrate } from 'holdfast'
import { startEmbedded } from '#holdfast/embedded/embedded'
import { makeDuties } from '#holdfast/reaper/duties'
import { endDeadSessions } from '#holdfast/reaper/session.sql'
import { memberKinds as kinds, type Member, startMember, swift } from './crash/member.ts'
import { sweepOf } from './crash/sweep.ts'
import { newFolder, pidsOf, query as queryOnce, stopLater } from './embedded/given.ts'
import { expect, type Fixtures, test, until } from './fixtures.ts'
import { setCrashes } from './places.ts'
import { makeWire } from './wire.ts'

const started = (members: Member[]) => members.reduce((sum, member) => sum + member.started().length, 0)
const isLong = `select bool_and(heartbeat_at < now() - interval '4 s') as is_long from holdfast.session where ended_at is null`

test("outages of the database that outlast every lease are nobody's crash", { timeout: 90_000 }, async ({
  url,
  open,
  query,
}) => {
  const wire = await makeWire(url)
  const settings = { ...swift, concurrency: 5 }
  const workers = await Promise.all([0, 1].map(() => startMember({ url: wire.url, settings })))
  const hf = await open(swift)
  const jobs = await hf.submitMany(
    kinds.hold,
    Array.from({ length: 10 }, () => ({ input: null })),
  )
  for (const outages of [1, 2, 3]) {
    await until(() => started(workers) >= outages * jobs.length, 'all jobs run', 30_000)
    wire.stall()
    await until(async () => (await query(isLong))[0]?.is_long === true, 'nobody has been heard of for long', 30_000)
    wire.reconnect()
  }
  await until(() => started(workers) >= 4 * jobs.length, 'all jobs run again', 30_000)
  expect(
    await query(
      'select max(crashes) as crashes, count(*)::int as jobs from holdfast.job_status where finished_at is null',
    ),
  ).toEqual([{ crashes: 0, jobs: jobs.length }])
  for (const worker of workers) worker.order({ open: 'all' })
  await until(
    async () => (await query('select from holdfast.job_status where finished_at is null')).length === 0,
    'all jobs end',
  )
  expect(await query(`select from holdfast.event where type in ('job.revived', 'job.quarantined')`)).toEqual([])
})

test("a lease that ran out while the server itself was away is nobody's crash", { timeout: 90_000 }, async () => {
  const embedded = stopLater(await startEmbedded({ dir: await newFolder(), durable: false }))
  const { url } = embedded
  await migrate(url)
  const worker = await startMember({ url, kinds: ['hold'], settings: swift })
  const client = await startMember({ url, role: 'client', settings: swift })
  client.order({ submit: { kind: 'hold' } })
  await worker.heard('the job runs', (line) => line.started !== undefined)
  const { postgres, keeper } = await pidsOf(embedded.dir)
  process.kill(keeper, 'SIGSTOP')
  process.kill(postgres, 'SIGKILL')
  await worker.heard('the worker gives its lease up for lost', (line) => line.aborted !== undefined)
  // it cannot come back before a new leader has had a look
  await worker.kill('SIGSTOP')
  process.kill(keeper, 'SIGCONT')
  await until(() => queryOnce(url, 'select 1').catch(() => false), 'the server is back', 30_000)
  const reaper = await startMember({ url, role: 'reap', settings: swift })
  await reaper.heard('a reaper leads on the new server', (line) => line.log === 'became leader')
  const sweeps = async () => Number(/^holdfast_sweep_seconds_count (\d+)$/m.exec(await reaper.metrics())?.[1] ?? 0)
  await until(async () => (await sweeps()) > 3, 'some sweeps have looked at it')
  await worker.kill('SIGCONT')
  await until(() => worker.started().length === 2, 'the job runs again')
  expect(await queryOnce(url, 'select crashes, attempt from holdfast.job_status where finished_at is null')).toEqual([
    { crashes: 0, attempt: 2 },
  ])
  // a crash that was counted and taken back would look the same in the row
  const lost = `select type from holdfast.event where type in ('job.revived', 'job.cleared', 'job.quarantined')`
  expect(await queryOnce(url, lost)).toEqual([])
})

test('a session that was last heard of before the server started is not judged before it had the time to come back', async ({
  given,
  query,
  store,
}) => {
  const [before, after] = [await given.session(), await given.session()]
  // whoever has led all the while, silence since the start of the server proves nothing for as long as `lost_after`
  await query(
    `update holdfast.session set lease_until = now() - interval '1 s', lost_after = interval '1000 years',
    heartbeat_at = pg_postmaster_start_time() + case when id = $1 then interval '-1 s' else interval '0 s' end`,
    [before],
  )
  const isSteady = { steadyMs: Number.POSITIVE_INFINITY, watchedMs: Number.POSITIVE_INFINITY }
  const ended = async () => (await store.run(endDeadSessions, { limit: 10, ...isSteady })).map(({ id }) => id)
  expect(await ended()).toEqual([after])
  await query(`update holdfast.session set lost_after = interval '0 s'`)
  await until(async () => (await ended()).includes(before), 'its time is over')
})

test('a worker that was cut off and comes back takes the crashes of its jobs back', { timeout: 90_000 }, async ({
  url,
  hf,
  query,
}) => {
  const wires = await Promise.all([makeWire(url), makeWire(url)])
  const [one, two] = await Promise.all(wires.map((wire) => startMember({ url: wire.url, settings: swift })))
  const members = [one, two] as [Member, Member]
  await startMember({ url, role: 'reap', settings: swift })
  const { id } = await hf.submit(kinds.hold, null)
  for (let cuts = 1; cuts <= 3; cuts++) {
    const attempt = () =>
      members.findIndex((member) => member.started().some((run) => run.id === id && run.attempt === cuts))
    await until(() => attempt() >= 0, 'the job runs')
    const wire = wires[attempt()]
    wire?.stall()
    await until(async () => (await hf.get(id))?.attempt === cuts + 1, 'the job is taken over')
    wire?.reconnect()
    await until(async () => (await hf.get(id))?.crashes === 0, 'the crash is taken back')
  }
  for (const member of members) member.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends')
  const types = (await hf.timeline(id)).map(({ type }) => type)
  expect(types.filter((type) => type === 'job.revived')).toHaveLength(3)
  expect(types.filter((type) => type === 'job.cleared')).toHaveLength(3)
  expect(await query('select from holdfast.session where came_back_at is not null and cleared_at is null')).toEqual([])
  expect((await hf.audit()).violations).toEqual([])
})

test('a job on its last life whose worker may still come back is not quarantined', { timeout: 60_000 }, async ({
  url,
  hf,
  query,
}) => {
  const wire = await makeWire(url)
  const { id } = await hf.submit(kinds.hold, null)
  await setCrashes(query, 2)
  const settings = { ...swift, leaseMs: 4_000 }
  const worker = await startMember({ url: wire.url, settings })
  await worker.heard('the job runs', (line) => line.started !== undefined)
  await startMember({ url, role: 'reap', settings })
  wire.stall()
  await until(async () => (await query(`select from holdfast.session where ended_at is not null`)).length === 1)
  wire.reconnect()
  await until(() => worker.started().length === 2, 'the job runs again')
  expect(await hf.get(id)).toMatchObject({ state: 'running', attempt: 2, crashes: 2 })
})

test('a job on its last life whose worker never comes back is quarantined two leases after its last sign', {
  timeout: 60_000,
}, async ({ url, hf, query }) => {
  const { id } = await hf.submit(kinds.hold, null)
  await setCrashes(query, 2)
  const settings = { ...swift, pooled: true }
  const victim = await startMember({ url, settings })
  await victim.heard('the job runs', (line) => line.started !== undefined)
  await startMember({ url, role: 'reap', settings })
  await victim.kill('SIGKILL')
  await until(async () => (await hf.get(id))?.state === 'failed', 'it is quarantined')
  expect(await hf.get(id)).toMatchObject({ crashes: 3, error: { code: 'quarantined' } })
  expect(
    await query(`select event.at - session.heartbeat_at >= interval '3 s' as has_waited
      from holdfast.event join holdfast.session on session.id = event.session_id where type = 'job.quarantined'`),
  ).toEqual([{ has_waited: true }])
})

/** Jobs with a crash each whose workers have come back. Crashes of the first few jobs can't be taken back. */
async function uncleared(
  { given, store, query }: Pick<Fixtures, 'given' | 'store' | 'query'>,
  { jobs, stuck }: { jobs: number; stuck: number },
): Promise<void> {
  const ids: string[] = []
  for (let count = 0; count < jobs; count++) ids.push((await given.attemptOfDeadSession()).id)
  expect((await sweepOf(store, makeDuties())).revived).toHaveLength(jobs)
  await query('update holdfast.session set came_back_at = now()')
  const bad = ids.slice(0, stuck).map((id) => `'${id}'`)
  await query(`
    create function holdfast.refuse_for_test() returns trigger language plpgsql as $$
    begin raise exception 'refused'; end $$;
    create trigger refuse_for_test before update on holdfast.ready for each row
    when (old.job_id in (${bad.join()})) execute function holdfast.refuse_for_test()`)
}

for (const [which, stuck] of [
  ["a crash that can't be taken back keeps", 1],
  ["crashes that can't be taken back keep", 22],
] as const)
  test(`${which} no other from being taken back`, async ({ given, store, query }) => {
    const open = () => query('select from holdfast.session where came_back_at is not null and cleared_at is null')
    const blamed = () => query('select from holdfast.ready where crashes > 0')
    await uncleared({ given, store, query }, { jobs: 30, stuck })
    const clearing = makeDuties().filter(({ name }) => name === 'clearReturned')
    for (let sweeps = 0; sweeps < 3; sweeps++) await sweepOf(store, clearing)
    expect(await blamed()).toHaveLength(stuck)
    expect(await open()).toHaveLength(stuck)
    await query('drop trigger refuse_for_test on holdfast.ready')
    for (let sweeps = 0; sweeps < 3; sweeps++) await sweepOf(store, clearing)
    expect(await blamed()).toEqual([])
    expect(await open()).toEqual([])
  })
