import { defineJob } from 'holdfast'
import { makeHttpMeter } from '#holdfast/metrics/http-metrics'
import { type MetricName, metricTable } from '#holdfast/metrics/metric-table'
import { memberKinds as kinds, startMember, swift } from './crash/member.ts'
import { expect, gate, test, until } from './fixtures.ts'
import { makeWire } from './wire.ts'

/** The sum over all labels of a metric; of a histogram, how often it was observed. */
function metricIn(text: string, name: MetricName, labels = ''): number {
  const row = new RegExp(`^${name}(?:_count)?(\\{[^}]*\\})? (\\S+)$`)
  const matches = text.split('\n').map((line) => row.exec(line))
  return matches.reduce((sum, match) => (match?.[0].includes(labels) ? sum + Number(match[2]) : sum), 0)
}

test('every metric of the table is told, with its help and type, from the start', async ({ hf }) => {
  const text = await makeHttpMeter().text(hf)
  for (const [name, { type, help }] of Object.entries(metricTable)) {
    expect(text).toContain(`# HELP ${name} ${help}`)
    expect(text).toContain(`# TYPE ${name} ${type}`)
  }
  expect(text.match(/^# TYPE holdfast_/gm)).toHaveLength(Object.keys(metricTable).length)
})

/** What is wrong with a text of metrics, by the rules that `promtool check metrics` has for names, types and help. */
function faultsIn(text: string): string[] {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name as string, type]))
  const helps = [...text.matchAll(/^# HELP (\S+) \S/gm)].map(([, name]) => name as string)
  const samples = [...text.matchAll(/^([a-z]\S*?)(\{.*\})? \S+$/gim)].map(([, name]) => name as string)
  const faults = [...types].flatMap(([name, type]) => [
    !helps.includes(name) && `${name} has no help`,
    helps.indexOf(name) !== helps.lastIndexOf(name) && `${name} is told twice`,
    (type === 'counter') !== name.endsWith('_total') && `${name} is a ${type}`,
    type !== 'histogram' &&
      type !== 'summary' &&
      /_(count|sum|bucket)$/.test(name) &&
      `${name} ends as a histogram does`,
    /[A-Z:]/.test(name) && `${name} has letters that it should not`,
    /_(ms|milliseconds|minutes|hours|days|kb|mb|kilobytes|megabytes|percent)(_|$)/.test(name) &&
      `${name} has no base unit`,
    /_(counter|gauge|histogram|summary)(_|$)/.test(name) && `${name} names its type`,
  ])
  const known = (name: string) => types.has(name) || types.has(name.replace(/_(count|sum|bucket)$/, ''))
  return [...faults.filter((fault) => fault !== false), ...samples.filter((name) => !known(name))]
}

test('the text is clean by the rules of Prometheus, with what Node tells of the process', async ({ hf, given }) => {
  await given.queued()
  const meter = makeHttpMeter()
  meter.answered({ route: '/v1/jobs/{id}', method: 'GET', status: 200, ms: 12 })
  const text = await meter.text(hf)
  expect(faultsIn(text)).toEqual([])
  expect(text).toMatch(/^process_cpu_user_seconds_total \S+$/m)
  expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds \S+$/m)
  expect(faultsIn(text.replace('# HELP holdfast_up ', '# '))).toEqual(['holdfast_up has no help'])
})

test('the database is asked for queues, sessions, groups and deliveries when somebody collects', async ({
  hf,
  given,
  query,
}) => {
  await given.queued({ queue: 'slow' })
  await query(`update holdfast.ready set run_at = now() - interval '1 h'`)
  await given.queued({ queue: 'slow', delayMs: 60_000 })
  await given.running({ queue: 'busy' })
  const reading = await hf.events.subscribe('mailer', {}, () => {})
  const text = await hf.metrics()
  expect(text).toMatch(/^holdfast_up 1$/m)
  expect(text).toMatch(/^holdfast_queue_due_jobs\{queue="slow"\} 1$/m)
  expect(text).toMatch(/^holdfast_queue_due_jobs\{queue="busy"\} 0$/m)
  expect(text).toMatch(/^holdfast_queue_oldest_due_seconds\{queue="slow"\} 36\d\d\.\d+$/m)
  expect(text).toMatch(/^holdfast_queue_workers\{queue="slow"\} 0$/m)
  expect(text).toMatch(/^holdfast_sessions 1$/m)
  expect(text).toMatch(/^holdfast_event_group_behind\{group="mailer"\} \d+$/m)
  expect(text).toMatch(/^holdfast_deliveries_pending 0$/m)
  await reading.stop()
  await hf.events.forget('mailer')
  await query('delete from holdfast.ready')
  const later = await hf.metrics()
  expect(later).not.toContain('group="mailer"')
  expect(later).not.toContain('queue="slow"')
})

test('while the database is away the rest is told, and that it is away', async ({ url, open, given }) => {
  await given.queued({ queue: 'slow' })
  const wire = await makeWire(url)
  const hf = await open({ url: wire.url, statementTimeoutMs: 1_000 })
  expect(await hf.metrics()).toContain('queue="slow"')
  wire.stall()
  const away = await hf.metrics()
  expect(away).toMatch(/^holdfast_up 0$/m)
  expect(away).not.toContain('queue="slow"')
  expect(away).not.toMatch(/^holdfast_sessions /m)
  expect(away).toMatch(/^holdfast_lease_doubts_total 0$/m)
  wire.reconnect()
  await until(async () => (await hf.metrics()).includes('\nholdfast_up 1\n'), 'the database is back')
})

test('an HTTP server counts its requests, waits and listeners, with or without a database', async ({ hf }) => {
  const meter = makeHttpMeter()
  meter.answered({ route: '/v1/jobs', method: 'POST', status: 201, ms: 3 })
  const over = [meter.waits(), meter.waits(), meter.listens()]
  const before = await meter.text(undefined)
  expect(before).toMatch(/^holdfast_http_requests_total\{route="\/v1\/jobs",method="POST",status="201"\} 1$/m)
  expect(before).toMatch(/^holdfast_http_request_seconds_bucket\{le="0.005",route="\/v1\/jobs"\} 1$/m)
  expect(before).toMatch(/^holdfast_http_waits 2$/m)
  expect(before).toMatch(/^holdfast_http_listeners 1$/m)
  expect(before).toMatch(/^holdfast_up 0$/m)
  expect(faultsIn(before)).toEqual([])
  for (const end of [...over, ...over]) end()
  const after = await meter.text(hf)
  expect(after).toMatch(/^holdfast_http_waits 0$/m)
  expect(after).toMatch(/^holdfast_http_listeners 0$/m)
  expect(after).toMatch(/^holdfast_up 1$/m)
})

test('settles are counted by kind and outcome', async ({ open }) => {
  const good = defineJob('good', { run: () => 1 })
  const bad = defineJob('bad', {
    retries: 1,
    run: () => {
      throw new Error('It broke.')
    },
  })
  const hf = await open({ ...swift, jobs: [good, bad] })
  await hf.work()
  const jobs = [...(await hf.submitMany(good, [{ input: null }, { input: null }])), await hf.submit(bad, null)]
  for (const { id } of jobs) await until(async () => (await hf.get(id))?.finishedAt, 'the job ends')
  const settled = (labels: string) => hf.metrics().then((text) => metricIn(text, 'holdfast_settled_total', labels))
  await until(async () => (await settled('')) === 4, 'all settles are counted')
  expect(await settled('kind="good",outcome="finish"')).toBe(2)
  expect(await settled('kind="bad",outcome="retry"')).toBe(1)
  expect(await settled('kind="bad",outcome="fail"')).toBe(1)
})

test('kinds that remote workers make up are counted by name only up to a limit', async ({ hf }) => {
  const names = Array.from({ length: 210 }, (_, n) => `made-up-${n}`)
  for (const part of [names.slice(0, 105), names.slice(105)]) {
    await Promise.all(part.map((name) => hf.submit(defineJob(name, { run: () => {} }), null as never)))
    const { id } = await hf.remote.open({ kinds: part.map((name) => ({ name })) })
    const claimed = await hf.remote.claim(id, { most: 200 })
    await hf.remote.settle(
      id,
      claimed.map(({ id, attempt }) => ({ id, attempt, outcome: 'succeeded' as const })),
    )
  }
  const lines = (await hf.metrics()).split('\n').filter((line) => line.startsWith('holdfast_settled_total{'))
  expect(lines).toHaveLength(201)
  expect(lines).toContain('holdfast_settled_total{kind="(other)",outcome="finish"} 10')
})

test('a crash moves the metrics of the leader: sessions ended, revivals by class and rung, recovery and sweep seconds', async ({
  url,
  open,
}) => {
  const hf = await open(swift)
  const reaping = await hf.reap()
  await until(() => reaping.term(), 'it leads')
  const victim = await startMember({ url, settings: swift })
  const { id } = await hf.submit(kinds.hold, null)
  await victim.heard('the job runs', (line) => line.started !== undefined)
  await victim.kill('SIGKILL')
  await until(async () => (await hf.get(id))?.crashes === 1, 'the job is revived')
  const text = await until(async () => {
    const now = await hf.metrics()
    return metricIn(now, 'holdfast_revivals_total') > 0 && now
  }, 'the revival is counted')
  expect(text).toContain('holdfast_leader_term 1')
  expect(metricIn(text, 'holdfast_sessions_ended_total', 'rung="lock gone"')).toBe(1)
  expect(metricIn(text, 'holdfast_revivals_total', 'orphan="running-dead-session",rung="lock gone"')).toBe(1)
  expect(metricIn(text, 'holdfast_recovery_seconds', 'rung="lock gone"')).toBe(1)
  const sum = /^holdfast_recovery_seconds_sum\{rung="lock gone"\} (\S+)$/m.exec(text)?.[1]
  expect(Number(sum)).toBeGreaterThan(swift.lostAfterMs / 1000)
  const sweeps = metricIn(text, 'holdfast_sweep_seconds')
  await until(async () => metricIn(await hf.metrics(), 'holdfast_sweep_seconds') > sweeps, 'it sweeps on')
  await reaping.stop()
  expect(await hf.metrics()).toContain('holdfast_leader_term 0')
})

test('an orphan that cannot be moved is counted, and its age grows until it can', async ({ given, open, query }) => {
  const bad = await given.attemptOfDeadSession({ crashBudget: 1 })
  await query(
    `update holdfast.session set heartbeat_at = now() - interval '1 h', ended_at = now(), ended_by = 'child exited' where id = $1`,
    [bad.sessionId],
  )
  await query(`
    create function holdfast.refuse_poison() returns trigger language plpgsql as $$
    begin raise exception 'poison'; end $$;
    create trigger poison before delete on holdfast.lease for each row execute function holdfast.refuse_poison()`)
  const hf = await open(swift)
  await hf.reap()
  const told = async (name: MetricName) => metricIn(await hf.metrics(), name)
  await until(async () => (await told('holdfast_orphan_failures_total')) > 1, 'the failures are counted')
  expect(await told('holdfast_oldest_orphan_seconds')).toBeGreaterThan(3_500)
  await query('drop trigger poison on holdfast.lease')
  await until(async () => (await hf.get(bad.id))?.state === 'failed', 'it is quarantined')
  await until(async () => (await told('holdfast_oldest_orphan_seconds')) === 0, 'no orphan is left')
  expect(await told('holdfast_quarantines_total')).toBe(1)
})

test('a duty that fails as a whole is counted by its name', async ({ open, query }) => {
  await query('alter table holdfast.refusal rename to elsewhere')
  const hf = await open(swift)
  await hf.reap()
  await until(
    async () => metricIn(await hf.metrics(), 'holdfast_sweep_failures_total', 'duty="forget"') === 1,
    'the failed duty is counted',
  )
})

test('a lease in doubt is counted', async ({ open, query }) => {
  const begun = gate()
  const slow = defineJob('slow', {
    async run({ signal }) {
      begun.open()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  })
  const hf = await open({ ...swift, jobs: [slow] })
  await hf.work()
  await hf.submit(slow, null)
  await begun.promise
  await query('update holdfast.session set ended_at = now()')
  await until(async () => metricIn(await hf.metrics(), 'holdfast_lease_doubts_total') === 1, 'the doubt is counted')
  await until(async () => metricIn(await hf.metrics(), 'holdfast_refused_writes_total') >= 1, 'the refusal is counted')
  expect(metricIn(await hf.metrics(), 'holdfast_refused_writes_total', 'write="heartbeat"')).toBe(1)
})

test('progress that goes down is kept back, and is no refused write', async ({ open, query }) => {
  const may = [gate(), gate()]
  const steps = defineJob('steps', {
    async run({ progress }) {
      progress(5, 10)
      await may[0]?.promise
      progress(3, 10)
      await may[1]?.promise
    },
  })
  const hf = await open({ ...swift, jobs: [steps] })
  await hf.work()
  const { id } = await hf.submit(steps, null)
  await until(async () => (await hf.get(id))?.progress?.done === 5, 'the first report is written')
  for (const one of may) one.open()
  await until(async () => (await hf.get(id))?.state === 'succeeded', 'the job ends')
  expect(await hf.get(id)).toMatchObject({ progress: { done: 5 } })
  expect(metricIn(await hf.metrics(), 'holdfast_refused_writes_total')).toBe(0)
  expect(await query('select from holdfast.refusal')).toEqual([])
})
