import { migrate } from 'holdfast'
import { readConfig } from '#holdfast/config/config'
import { startEmbedded } from '#holdfast/embedded/embedded'
import { sessionLockClass } from '#holdfast/postgres/locks'
import { boundOf, ladder } from '#holdfast/reaper/recovery-bound'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { newFolder, pidsOf, query as queryOnce, stopLater } from './embedded/given.ts'
import { expect, test, until } from './fixtures.ts'

const boundOfRung = (rung: string) => ladder(readConfig({}, {})).find((one) => one.rung === rung)?.boundMs ?? 0

test('at default settings the ladder promises 5 s for a crash and 20 s for a cut', () => {
  const config = readConfig({}, {})
  expect(ladder(config).map(({ rung }) => rung)).toEqual([
    'child exited',
    'lock gone',
    'lease ran out',
    'deadline passed',
  ])
  expect(boundOfRung('lock gone')).toBeLessThanOrEqual(5_000)
  expect(boundOfRung('lease ran out')).toBeLessThanOrEqual(20_000)
  expect(boundOf(config)).toBe(boundOfRung('lease ran out'))
})

test('kill -9 of a worker with 20 running jobs and a timeout of an hour is recovered within 5 s at default settings', {
  timeout: 90_000,
}, async ({ url, hf }) => {
  const settings = { concurrency: 20 }
  const tookMs: number[] = []
  let victim = await startMember({ url, settings })
  for (const name of ['first', 'second', 'third']) {
    const before = victim.started().length
    const jobs = await hf.submitMany(
      kinds.hold,
      Array.from({ length: 20 }, () => ({ input: { name } })),
    )
    await until(() => victim.started().length === before + jobs.length, 'all jobs run')
    const heir = await startMember({ url, settings })
    const killedAtMs = performance.now()
    await victim.kill('SIGKILL')
    await until(() => heir.started().length === jobs.length, 'all jobs run again')
    tookMs.push(Math.round(performance.now() - killedAtMs))
    heir.order({ open: name })
    for (const { id } of jobs) {
      await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends')
      expect(await hf.get(id)).toMatchObject({
        attempt: 2,
        crashes: 1,
        failures: 0,
        outputs: { run: { by: heir.pid } },
      })
    }
    victim = heir
  }
  console.log(`killed with 20 running jobs: recovered in ${tookMs.join(', ')} ms`)
  for (const ms of tookMs) expect(ms).toBeLessThanOrEqual(5_000)
})

test('the jobs of a child that its supervisor saw end move in under a second at default settings', async ({
  url,
  hf,
}) => {
  const child = await startMember({ url, supervisor: 'the boss' })
  const jobs = await hf.submitMany(
    kinds.hold,
    Array.from({ length: 5 }, () => ({ input: null })),
  )
  await until(() => child.started().length === jobs.length, 'all jobs run')
  const peer = await startMember({ url })
  await child.kill('SIGKILL')
  const endedAtMs = performance.now()
  await hf.reclaim({ supervisor: 'the boss', pid: child.pid })
  await until(() => peer.started().length === jobs.length, 'all jobs run again')
  const tookMs = performance.now() - endedAtMs
  console.log(`a child that ended: recovered in ${Math.round(tookMs)} ms`)
  expect(tookMs).toBeLessThan(1_000)
  for (const { id } of jobs)
    expect((await hf.timeline(id)).at(-1)).toMatchObject({ type: 'job.revived', data: { rung: 'child exited' } })
})

test('to reclaim the jobs of a child touches no other process, and does nothing the second time', async ({
  url,
  hf,
  query,
}) => {
  const worker = await startMember({ url, supervisor: 'the boss', settings: swift })
  await hf.reclaim({ supervisor: 'another boss', pid: worker.pid })
  await hf.reclaim({ supervisor: 'the boss', pid: worker.pid + 1 })
  expect(await query('select ended_at from holdfast.session')).toEqual([{ ended_at: null }])
  await worker.kill('SIGKILL')
  await hf.reclaim({ supervisor: 'the boss', pid: worker.pid })
  await hf.reclaim({ supervisor: 'the boss', pid: worker.pid })
  expect(await query('select ended_by from holdfast.session')).toEqual([{ ended_by: 'child exited' }])
})

test('a zombie woken after its successor started is refused in all it writes, and its handler is aborted', async ({
  url,
  hf,
  query,
}) => {
  const zombie = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.stubborn, null)
  await zombie.heard('the first attempt runs', (line) => line.started !== undefined)
  const heir = await startMember({ url, settings: swift })
  await zombie.kill('SIGSTOP')
  const frozenAtMs = performance.now()
  await heir.heard('its successor runs', (line) => line.started !== undefined)
  console.log(`frozen: recovered in ${Math.round(performance.now() - frozenAtMs)} ms`)
  expect((await hf.timeline(id)).at(-1)).toMatchObject({ type: 'job.revived', data: { rung: 'lease ran out' } })
  await zombie.kill('SIGCONT')
  expect(await zombie.heard('its handler is aborted', (line) => line.aborted !== undefined)).toMatchObject({
    aborted: { id, attempt: 1, reason: 'lease_lost' },
  })
  const refusals = () =>
    query<{ write: string }>(
      `select write, attempt, session_id::int as session from holdfast.refusal where job_id = $1 order by id`,
      [id],
    )
  await until(async () => (await refusals()).length > 0, 'its heartbeat is refused')
  zombie.order({ open: 'late' })
  const all = await until(async () => {
    const rows = await refusals()
    return rows.length === 4 && rows
  }, 'its progress, its line and its outcome are refused')
  expect(new Set(all.map(({ write }) => write))).toEqual(new Set(['heartbeat', 'progress', 'log', 'finish']))
  expect(all).toMatchObject(Array(4).fill({ attempt: 1 }))
  const counted = await zombie.metrics()
  for (const write of ['heartbeat', 'progress', 'log', 'finish'])
    expect(counted).toContain(`holdfast_refused_writes_total{write="${write}"} 1`)
  const job = await hf.get(id)
  expect(job).toMatchObject({ state: 'running', attempt: 2, sessionId: heir.session, progress: null, outputs: {} })
  expect((await hf.timeline(id)).map(({ type }) => type).filter((type) => type !== 'job.cleared')).toEqual([
    'job.submitted',
    'job.revived',
  ])
  heir.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'its successor ends the job')
  expect(await hf.get(id)).toMatchObject({
    attempt: 2,
    outputs: { run: { by: heir.pid } },
    progress: { done: 7, attempt: 2 },
  })
  expect((await hf.timeline(id)).map(({ type }) => type).filter((type) => type !== 'job.cleared')).toEqual([
    'job.submitted',
    'job.revived',
    'job.log',
    'job.finished',
  ])
})

test('a worker whose heartbeat connection breaks makes another one and keeps its jobs', async ({ url, hf, query }) => {
  const settings = { ...swift, lostAfterMs: 3_000, leaseMs: 15_000 }
  const worker = await startMember({ url, settings })
  const { id } = await hf.submit(kinds.hold, null)
  await worker.heard('the job runs', (line) => line.started !== undefined)
  const holders = async () =>
    (
      await query<{ pid: number }>(
        `select pid from pg_locks where locktype = 'advisory' and classid = $1 and objid = $2
        and database = (select oid from pg_database where datname = current_database())`,
        [sessionLockClass, worker.session],
      )
    ).map(({ pid }) => pid)
  const [first] = await holders()
  await query('select pg_terminate_backend($1)', [first])
  await until(async () => {
    const [now] = await holders()
    return now !== undefined && now !== first
  }, 'another connection holds the lock')
  worker.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends')
  expect(await hf.get(id)).toMatchObject({ attempt: 1, crashes: 0 })
  expect(worker.lines.some((line) => line.aborted)).toBe(false)
})

test('behind a transaction pooler, where no lock lasts, a killed worker is known by its lease', async ({
  url,
  open,
}) => {
  const settings = { ...swift, pooled: true }
  const hf = await open(settings)
  const victim = await startMember({ url, settings })
  const { id } = await hf.submit(kinds.hold, null)
  await victim.heard('the job runs', (line) => line.started !== undefined)
  const heir = await startMember({ url, settings })
  await victim.kill('SIGKILL')
  heir.order({ open: 'all' })
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job runs again')
  expect((await hf.timeline(id)).map(({ type, data }) => [type, data])).toMatchObject([
    ['job.submitted', null],
    ['job.revived', { rung: 'lease ran out' }],
    ['job.finished', null],
  ])
})

test('after a restart of Postgres no living session is taken for dead', { timeout: 60_000 }, async () => {
  const embedded = stopLater(await startEmbedded({ dir: await newFolder(), durable: false }))
  const { url } = embedded
  await migrate(url)
  const settings = { ...swift, leaseMs: 60_000 }
  const worker = await startMember({ url, kinds: ['stubborn'], settings })
  const client = await startMember({ url, role: 'client', settings })
  client.order({ submit: { kind: 'stubborn' } })
  const { id } = (await worker.heard('the job runs', (line) => line.started !== undefined)).started as { id: string }
  // it cannot say that it lives until long after the new server has lost its lock, and another one leads meanwhile
  await worker.kill('SIGSTOP')
  const { postgres } = await pidsOf(embedded.dir)
  process.kill(postgres, 'SIGKILL')
  await until(() => queryOnce(url, 'select 1').catch(() => false), 'the server is back', 30_000)
  const reaper = await startMember({ url, role: 'reap', settings })
  await reaper.heard('a reaper leads on the new server', (line) => line.log === 'became leader')
  const silent = `select extract(epoch from now() - heartbeat_at) * 1000 > 3 * ${swift.lostAfterMs} as is_long, ended_at,
    locked_on < pg_postmaster_start_time() as is_other from holdfast.session`
  await until(async () => (await queryOnce(url, silent))[0]?.is_long === true, 'the worker has been silent for long')
  const sweeps = async () => Number(/^holdfast_sweep_seconds_count (\d+)$/m.exec(await reaper.metrics())?.[1] ?? 0)
  const sweptBefore = await sweeps()
  await until(async () => (await sweeps()) > sweptBefore + 2, 'some sweeps have looked at it')
  expect(await queryOnce(url, silent)).toEqual([{ is_long: true, ended_at: null, is_other: true }])
  await worker.kill('SIGCONT')
  for (const name of ['all', 'late']) worker.order({ open: name })
  await until(
    async () =>
      (await queryOnce(url, `select state from holdfast.job_status where id = '${id}'`))[0]?.state === 'succeeded',
    'the job ends',
  )
  expect(await queryOnce(url, `select attempt, crashes from holdfast.job_status where id = '${id}'`)).toEqual([
    { attempt: 1, crashes: 0 },
  ])
})
