import { defineJob, PermanentError } from 'holdfast'
import { afterAll } from 'vitest'
import { textOf } from '#holdfast/postgres/sql'
import { type OrphanName, orphans } from '#holdfast/reaper/orphans'
import { applyRepair } from '#holdfast/why/apply-repair'
import { factsAbout, forgetSnapshots } from '#holdfast/why/facts.sql'
import { rules } from '#holdfast/why/verdict'
import { call } from './cli/command.ts'
import { sweepOf } from './crash/sweep.ts'
import { expect, type Fixtures, gate, newDatabase, test, until } from './fixtures.ts'
import { plain } from './owned.ts'
import { clear, lead, type Made, orphansMade, othersMade } from './why/made.ts'

const extract = defineJob('extract', { run: () => {} })

// Every class of the catalogue and every other verdict, made and asked about. What is made how: see why/made.ts.

const tables = [
  'job',
  'ready',
  'outcome',
  'barrier',
  'owned_barrier',
  'session',
  'queue',
  'delivery',
  'event',
  'stage_output',
]

/** All that a repair could change. */
function everything(query: Fixtures['query']) {
  const each = tables.map((name) => `(select json_agg(t order by t::text) from holdfast.${name} as t) as ${name}`)
  return query(`select ${each.join(', ')}`)
}

async function look({ hf, query, store }: Pick<Fixtures, 'hf' | 'query' | 'store'>, id: string, made: Made) {
  const why = await hf.why(id)
  expect(why.verdict).toEqual({ code: made.code, sentence: expect.stringMatching(made.says) })
  if (made.but) expect(why.disagreements).toContainEqual(expect.stringMatching(made.but))
  if (made.next === null) expect(why.next).toBeNull()
  if (made.next) expect(why.next?.what).toMatch(made.next)
  if (why.next?.byAt) expect(why.next.byAt.getTime()).toBeGreaterThan(why.at.getTime())
  expect(why.repair?.name ?? null).toBe(made.repair ?? null)

  const before = await everything(query)
  const dry = await hf.repair(id, { dryRun: true })
  expect(dry).toMatchObject({ repair: made.repair ?? null, isApplied: false })
  expect(dry.sentence).toMatch(/^Nothing was changed/)
  expect(await everything(query)).toEqual(before)

  const repaired = await hf.repair(id)
  expect(repaired.isApplied).toBe(made.repair !== undefined)
  if (!made.repair) expect(await everything(query)).toEqual(before)
  else if (made.after) expect(repaired.why.verdict.code).toBe(made.after)
  else expect(repaired.why.verdict.code).not.toBe(made.code)
  // whoever is late finds nothing to do; only a wake-up can be given any number of times
  if (made.repair && made.repair !== 'wake')
    expect(await applyRepair(store, made.repair, { id: why.id, tenant: null, facts: why.facts })).toBe('nothing')
  return why
}

// one database for all classes: to copy one for each would take longer than all the rest
let shared: ReturnType<typeof newDatabase> | undefined
const onShared = test.extend({
  url: async ({ task: _task }, use) => {
    shared ??= newDatabase()
    await use((await shared).url)
  },
})
afterAll(async () => (await shared)?.drop())

for (const [name, made] of Object.entries(orphansMade) as [OrphanName, Made][])
  onShared(`why knows the orphan ${name}, and what moves it`, async ({ given, store, query, hf, pool }) => {
    await clear(query)
    await lead({ store })
    let undo: () => Promise<unknown> = async () => {}
    const id = await made.make({ given, store, query, hf, pool, later: (work) => (undo = work) })
    const why = await look({ hf, query, store }, id, made)
    expect(why.orphan).toBe(made.looksLike ?? name)
    await undo()
  })

test('every class of the catalogue has a verdict, and every verdict is made by these tests', () => {
  expect(Object.keys(orphansMade).sort()).toEqual(Object.keys(orphans).sort())
  for (const name of Object.keys(orphans) as OrphanName[]) {
    const fitting = rules.filter((rule) => rule.orphans.includes(name)).map(({ code }) => code)
    expect(fitting, name).toContain(orphansMade[name].code)
  }
  const made = new Set([...Object.values(orphansMade), ...othersMade].map(({ code }) => code))
  expect([...made].sort()).toEqual(rules.map(({ code }) => code).sort())
})

test('why has a verdict for every state that is no orphan', async ({ given, store, query, hf, pool }) => {
  await lead({ store })
  for (const made of othersMade) {
    const id = await made.make({ given, store, query, hf, pool, later: () => {} })
    const { orphan, disagreements } = await look({ hf, query, store }, id, made)
    // a class may look like this, too, and then it is named; but what is well must not be called into question
    if (orphan === null && !made.but) expect(disagreements, made.code).toEqual([])
  }
})

test('an attempt that fails for good leaves a snapshot of right before', async ({ open }) => {
  const broken = defineJob('broken', {
    run: () => {
      throw new PermanentError('It broke.')
    },
  })
  const hf = await open({ jobs: [broken] })
  await hf.work()
  const { id } = await hf.submit(broken, null)
  await until(async () => (await hf.get(id))?.state === 'failed', 'it fails')
  const { verdict, snapshots } = await hf.why(id)
  expect(verdict).toEqual({ code: 'failed', sentence: expect.stringMatching(/^failed .* ago: It broke\.$/) })
  expect(snapshots).toEqual([
    {
      at: expect.any(Date),
      attempt: 1,
      event: 'job.failed',
      verdict: { code: 'running', sentence: expect.stringMatching(/^running: attempt 1 at stage 1, on session \d+/) },
    },
  ])
})

test('a job that runs is well by every source, and the lock of its session is seen', async ({ open }) => {
  const start = gate()
  const held = defineJob('held', { run: () => start.promise })
  const hf = await open({ jobs: [held], heartbeatMs: 50 })
  await hf.work()
  const { id } = await hf.submit(held, null)
  const why = await until(async () => {
    const now = await hf.why(id)
    return now.facts.session?.canTellLock && now
  }, 'it runs under a session that has told of its lock')
  expect(why).toMatchObject({ verdict: { code: 'running' }, orphan: null, disagreements: [], repair: null })
  expect(why.facts.session?.isLocked).toBe(true)
  start.open()
})

test('attempts that lost their workers leave snapshots when they are revived, and when they are quarantined', async ({
  given,
  store,
  query,
  hf,
}) => {
  await lead({ store })
  const { id, queue } = await given.attemptOfDeadSession({ crashBudget: 2 })
  await sweepOf(store)
  const sessionId = await given.session()
  await given.claim({ sessionId, queue, isSuspect: true })
  await query(`update holdfast.session set ended_at = now(), ended_by = 'child exited' where id = $1`, [sessionId])
  await sweepOf(store)
  const { verdict, snapshots } = await hf.why(id)
  expect(verdict.code).toBe('quarantined')
  expect(snapshots).toMatchObject([
    {
      attempt: 1,
      event: 'job.revived',
      verdict: { code: 'session-ended', sentence: expect.stringMatching(/lease ran out/) },
    },
    {
      attempt: 2,
      event: 'job.quarantined',
      verdict: { code: 'session-ended', sentence: expect.stringMatching(/child exited/) },
    },
  ])
})

test('an optional stage that fails leaves a snapshot, and a settle that went well leaves none', async ({
  given,
  hf,
}) => {
  expect((await hf.why((await given.finished('partial')).id)).snapshots).toMatchObject([{ event: 'job.failed' }])
  expect((await hf.why((await given.finished('succeeded')).id)).snapshots).toEqual([])
})

test('facts that cannot be read do not undo a settle', async ({ given, hf, query }) => {
  await query('alter table holdfast.refusal rename to refusal_away')
  const { id } = await given.finished('failed')
  await query('alter table holdfast.refusal_away rename to refusal')
  expect(await hf.why(id)).toMatchObject({ state: 'failed', snapshots: [{ event: 'job.failed', verdict: null }] })
})

test('snapshots are forgotten with the events of their time', async ({ given, hf, query, store }) => {
  const { id } = await given.finished('failed')
  const other = await given.finished('failed')
  await query(`update holdfast.snapshot set at = now() - interval '40 d' where job_id = $1`, [id])
  expect(await store.run(forgetSnapshots, { olderThanMs: 10 * 86_400_000, limit: 10 })).toEqual([{ job_id: id }])
  await query(`update holdfast.snapshot set at = now() - interval '31 d'`)
  await hf.reap()
  await until(async () => (await hf.why(other.id)).snapshots.length === 0, 'the leader forgets it')
})

test('repairing a job whose wake-up was lost wakes the workers', async ({ given, hf, query, pool }) => {
  const { id } = await given.queued()
  await query(`update holdfast.ready set run_at = now() - interval '2 min'`)
  await query(`insert into holdfast.session (pid, host, version, kinds, queues, concurrency, lease_until, lost_after)
    select 1, 'test', '0', array[kind], array[queue], 10, now() + interval '1 min', interval '1 min' from holdfast.job_status where finished_at is null`)
  expect(await hf.why(id)).toMatchObject({ orphan: 'submitted-unannounced', repair: { name: 'wake' } })
  const worker = await pool.connect()
  const woken = gate<string>()
  worker.on('notification', ({ channel }) => woken.open(channel))
  await worker.query('listen holdfast_wake')
  expect((await hf.repair(id)).isApplied).toBe(true)
  expect(await woken.promise).toBe('holdfast_wake')
  worker.release(true)
})

test('a tenant is told about its own jobs only, and nothing about the machines', async ({
  given,
  store,
  query,
  hf,
}) => {
  await lead({ store })
  const { id, sessionId } = await given.running({ tenant: 'acme' })
  await query(`update holdfast.session set host = 'secret-host', pid = 4242, lease_until = now() - interval '1 s'`)
  await expect(hf.why(id, { tenant: 'other' })).rejects.toMatchObject({ code: 'job_not_found' })
  await expect(hf.repair(id, { tenant: 'other' })).rejects.toMatchObject({ code: 'job_not_found' })
  expect(JSON.stringify(await hf.why(id))).toMatch(/secret-host.*host-a/)
  const why = await hf.why(id, { tenant: 'acme' })
  expect(JSON.stringify(why)).not.toMatch(/secret-host|4242|host-a|4711/)
  expect(why).toMatchObject({ state: 'running', facts: { session: { id: sessionId } }, repair: { name: 'revive' } })
  expect(await hf.repair(id, { tenant: 'acme' })).toMatchObject({ isApplied: true, why: { state: 'queued' } })
})

test('the remote worker of a tenant is none for the jobs of others', async ({ hf, store }) => {
  await lead({ store })
  const { id } = await hf.submit(extract, null as never, { tenant: 'other' })
  const { id: own } = await hf.submit(extract, null as never, { tenant: 'acme' })
  await hf.remote.open({ kinds: [{ name: 'extract', queue: 'default' }], tenant: 'acme' })
  expect((await hf.why(id)).verdict.code).toBe('no-worker')
  expect((await hf.why(id, { tenant: 'other' })).facts.workers).toMatchObject({ living: 0, lastSeenAt: null })
  expect((await hf.why(own)).facts.workers).toMatchObject({ living: 1 })
  const workersOf = async (tenant: string) =>
    (await hf.queues({ tenant })).find(({ name }) => name === 'default')?.workers
  expect([await workersOf('other'), await workersOf('acme')]).toEqual([0, 1])
})

test('a tenant whose job waits behind those of others is promised no moment, and called no orphan', async ({
  hf,
  query,
}) => {
  await hf.remote.open({ kinds: [{ name: 'extract' }] })
  await hf.submit(extract, null as never, { tenant: 'other' })
  const { id } = await hf.submit(extract, null as never, { tenant: 'acme' })
  await query(`update holdfast.ready set run_at = run_at - interval '1 min'`)
  expect((await hf.why(id)).verdict.code).toBe('in-line')
  expect(await hf.why(id, { tenant: 'acme' })).toMatchObject({
    verdict: { code: 'due' },
    orphan: null,
    next: { byAt: null },
    repair: null,
  })
})

test('a remote worker is as late as its own lease says, not ours', async ({ hf, query, store }) => {
  await lead({ store })
  const { id } = await hf.submit(extract, null as never)
  const session = await hf.remote.open({ kinds: [{ name: 'extract' }], leaseMs: 600_000 })
  await hf.remote.claim(session.id)
  const heard = (ago: string) =>
    query(
      `update holdfast.session set heartbeat_at = now() - $1::interval, lease_until = now() - $1::interval + interval '10 min'`,
      [ago],
    )
  await heard('3 min')
  expect((await hf.why(id)).verdict.code).toBe('running')
  await heard('8 min')
  const late = await hf.why(id)
  expect(late.verdict.code).toBe('heartbeat-late')
  expect(late.next?.byAt?.getTime()).toBeGreaterThan(late.at.getTime() + 119_000)
})

test('who goes before a job is counted without walking over what is scheduled behind it', async ({
  given,
  pool,
  query,
}) => {
  const { id } = await given.queued()
  await query(
    `insert into holdfast.ready
    select made.*
    from holdfast.ready as one, generate_series(1, 20000) as n,
      jsonb_populate_record(one, jsonb_build_object('job_id', gen_random_uuid(), 'run_at', now() + n * interval '1 s')) as made
    where one.job_id = $1`,
    [id],
  )
  await query('analyze holdfast.ready')
  const client = await pool.connect()
  await client.query('begin')
  const piece = factsAbout.build({ id, shown: 10 })
  await client.query(textOf(piece), [...piece.values])
  const { rows } = await client.query(
    `select pg_stat_get_xact_tuples_returned('holdfast.ready_lane'::regclass)::int as read`,
  )
  await client.query('rollback')
  client.release()
  expect(rows[0].read).toBeLessThan(100)
})

test('a tenant cannot resume a queue that all tenants share', async ({ given, hf }) => {
  const { id, queue } = await given.queued({ tenant: 'acme' })
  await hf.pauseQueue(queue)
  expect(await hf.why(id)).toMatchObject({ repair: { name: 'resume-queue' } })
  expect(await hf.why(id, { tenant: 'acme' })).toMatchObject({ verdict: { code: 'queue-paused' }, repair: null })
  expect(await hf.repair(id, { tenant: 'acme' })).toMatchObject({ isApplied: false, repair: null })
})

test('the continuation of a barrier of its own is told about before it is submitted, to its tenant only', async ({
  hf,
}) => {
  const { job } = await hf.barrier.open({ id: 'b', ...plain, tenant: 'acme' })
  expect(await hf.why(job, { tenant: 'acme' })).toMatchObject({ state: null, verdict: { code: 'barrier-open' } })
  await expect(hf.why(job, { tenant: 'other' })).rejects.toMatchObject({ code: 'job_not_found' })
})

test('an id that no source knows is not found, and a word that is no id is refused', async ({ hf }) => {
  await expect(hf.why('01890a5d-ac96-774b-bcce-b302099a8057')).rejects.toMatchObject({ code: 'job_not_found' })
  await expect(hf.repair('01890a5d-ac96-774b-bcce-b302099a8057')).rejects.toMatchObject({ code: 'job_not_found' })
  await expect(hf.why('nonsense')).rejects.toMatchObject({ code: 'id_invalid' })
  await expect(hf.repair('01890a5d-ac96-774b-bcce-b302099a8057', { dryRun: 'yes' as never })).rejects.toMatchObject({
    code: 'option_invalid',
  })
})

test('holdfast why says the verdict first, then where sources disagree, and repairs only when told to', async ({
  url,
  given,
  store,
  hf,
}) => {
  await lead({ store })
  const { id } = await given.attemptOfDeadSession()
  const env = { HOLDFAST_URL: url }
  const told = await call(['why', id.slice(-8)], { env })
  expect(told.stdout).toMatch(/^why +lost: the lease of session \d+ ran out/)
  expect(told.stdout).toMatch(/^next +It returns to its queue and is claimed again, by [\d:.]+ at the latest/m)
  expect(told.stdout).toMatch(/^but +The row says running/m)
  expect(told.stdout).toMatch(/^session +\d+, on test, process \d+/m)
  expect(told.stdout).toMatch(/\$ holdfast why [0-9a-f]{8} --fix$/m)
  const dry = await call(['why', id, '--fix', '--dry-run'], { env })
  expect(dry.stdout).toMatch(/^repair +Nothing was changed\. This repair would be applied: End its session/)
  expect(await hf.get(id)).toMatchObject({ state: 'running' })
  const fixed = await call(['why', id, '--fix', '--json'], { env })
  expect(JSON.parse(fixed.stdout)).toMatchObject({ repair: 'revive', isApplied: true, why: { state: 'queued' } })
  expect(await hf.get(id)).toMatchObject({ state: 'queued', crashes: 1 })
  const gone = await call(['why', '01890a5d-ac96-774b-bcce-b302099a8057'], { env })
  expect(gone).toMatchObject({ code: 1, stderr: expect.stringMatching(/job_not_found/) })
})
