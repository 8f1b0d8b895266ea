import { type ConnectOptions, defineJob, type Holdfast } from 'holdfast'
import { expect, gate, test, until } from './fixtures.ts'
import { queueAgain } from './places.ts'

type Log = NonNullable<ConnectOptions['log']>

const fast: ConnectOptions = { heartbeatMs: 100, timeoutGraceMs: 300, concurrency: 2 }
const greet = defineJob('greet', { run: () => 'hello' })

/** A kind whose handlers ignore their signal, and end when the test says so. */
function makeUnresponsive() {
  const started: string[] = []
  const finish = gate()
  const unresponsive = defineJob('unresponsive', {
    run: async ({ job }) => {
      started.push(job.id)
      await finish.promise
      return 'too late'
    },
  })
  return { unresponsive, started, finish }
}

/** What was logged, by its level. */
function makeLog(): { log: Log; lines: { level: string; facts: Record<string, unknown>; message: string }[] } {
  const lines: { level: string; facts: Record<string, unknown>; message: string }[] = []
  const at = (level: string) => (facts: object, message: string) =>
    void lines.push({ level, facts: { ...facts }, message })
  return { log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }, lines }
}

const gauge = async (hf: Holdfast, name: string) => new RegExp(`^${name} (\\S+)$`, 'm').exec(await hf.metrics())?.[1]

test('a worker whose handlers ignore a cancel claims again after the grace, and shows them until they return', async ({
  open,
}) => {
  const { unresponsive, started, finish } = makeUnresponsive()
  const { log, lines } = makeLog()
  const hf = await open({ ...fast, log, jobs: [unresponsive, greet] })
  const working = await hf.work()
  const handles = await hf.submitMany(unresponsive, [{ input: null }, { input: null }])
  await until(() => started.length === 2, 'both places are taken')
  for (const { id } of handles) await hf.cancel(id)
  expect(await (await hf.submit(greet, null)).result({ timeout: 15_000 })).toMatchObject({ output: 'hello' })

  const [session] = await until(async () => {
    const living = await hf.sessions()
    return living[0]?.unresponsive === 2 && living
  }, 'the session shows them')
  expect(session).toMatchObject({ id: working.sessionId(), isClaiming: true, running: 0, blockedMs: 0 })
  const id = handles[0]?.id as string
  const told = await hf.why(id)
  expect(told).toMatchObject({ verdict: { code: 'handler-unresponsive' }, orphan: 'handler-ignores-signal' })
  expect(told.facts.unresponsive).toMatchObject([
    { sessionId: session?.id, attempt: 1, stage: 'run', pid: process.pid },
  ])
  expect(await gauge(hf, 'holdfast_unresponsive_handlers')).toBe('2')
  expect(await gauge(hf, 'holdfast_sessions_unresponsive')).toBe('2')
  const warned = lines.filter(({ level, message }) => level === 'warn' && message.startsWith('a handler ignored'))
  expect(warned.map(({ facts }) => facts.id).toSorted()).toEqual(handles.map((handle) => handle.id).toSorted())
  expect(warned[0]?.facts).toMatchObject({ kind: 'unresponsive', stage: 'run', attempt: 1, reason: 'cancelled' })

  finish.open()
  await until(async () => (await hf.sessions())[0]?.unresponsive === 0, 'none is left')
  expect(await hf.why(id)).toMatchObject({ verdict: { code: 'cancelled' }, disagreements: [] })
  expect(await gauge(hf, 'holdfast_unresponsive_handlers')).toBe('0')
})

test('a worker whose handlers ignore that their jobs were taken away claims again after the grace', async ({
  open,
  query,
}) => {
  const { unresponsive, started, finish } = makeUnresponsive()
  const hf = await open({ ...fast, jobs: [unresponsive, greet] })
  await hf.work()
  const handles = await hf.submitMany(unresponsive, [{ input: null }, { input: null }])
  await until(() => started.length === 2, 'both places are taken')
  await queueAgain(
    query,
    handles.map(({ id }) => id),
    { runAt: `now() + interval '1 hour'` },
  )
  expect(await (await hf.submit(greet, null)).result({ timeout: 15_000 })).toMatchObject({ output: 'hello' })
  await until(async () => (await hf.sessions())[0]?.unresponsive === 2, 'the session shows them')
  for (const { id } of handles)
    expect((await hf.why(id)).disagreements).toEqual([
      expect.stringMatching(/^The row says queued, attempt 1; the handler of attempt 1 was aborted \(lease_lost\)/),
    ])
  finish.open()
  await until(async () => (await hf.sessions())[0]?.unresponsive === 0, 'none is left')
  for (const { id } of handles) expect(await hf.get(id)).toMatchObject({ state: 'queued', attempt: 1 })
})

test('a job that waits for a place of cancelled handlers is told so', async ({ open }) => {
  const { unresponsive, started, finish } = makeUnresponsive()
  const hf = await open({ ...fast, timeoutGraceMs: 60_000, jobs: [unresponsive, greet] })
  await hf.work()
  const handles = await hf.submitMany(unresponsive, [{ input: null }, { input: null }])
  await until(() => started.length === 2, 'both places are taken')
  for (const { id } of handles) await hf.cancel(id)
  const waiting = await hf.submit(greet, null)
  const { verdict } = await until(async () => {
    const told = await hf.why(waiting.id)
    return told.verdict.code === 'workers-busy' && told
  }, 'it is said that the places are taken')
  expect(verdict.sentence).toMatch(/are busy with 0 jobs and 2 handlers of jobs that they no longer own/)
  finish.open()
  expect(await waiting.result({ timeout: 15_000 })).toMatchObject({ output: 'hello' })
})

test('at a number of handlers that ignore their signal, a worker lets the others finish, stops and says why', async ({
  open,
  hf: other,
}) => {
  const { unresponsive, started, finish } = makeUnresponsive()
  const may = gate()
  const good = defineJob('good', { run: () => may.promise.then(() => 'finished') })
  const { log, lines } = makeLog()
  const hf = await open({
    ...fast,
    log,
    concurrency: 3,
    maxUnresponsive: 2,
    drainMs: 60_000,
    jobs: [unresponsive, good],
  })
  const working = await hf.work()
  const neighbour = await hf.submit(good, null)
  const handles = await hf.submitMany(unresponsive, [{ input: null }, { input: null }])
  await until(() => started.length === 2, 'they run')
  for (const { id } of handles) await hf.cancel(id)
  expect(await working.ended).toMatchObject({ code: 'handlers_unresponsive' })
  const waiting = await hf.submit(good, null)
  const told = await until(async () => {
    const why = await other.why(waiting.id)
    return why.verdict.code === 'workers-draining' && why
  }, 'it is said that nobody claims')
  expect(told.verdict.sentence).toMatch(/are draining and no longer claim jobs; 2 handlers ignored their abort signal/)
  expect((await other.sessions())[0]).toMatchObject({ isClaiming: false, unresponsive: 2 })
  may.open()
  expect(await neighbour.result({ timeout: 15_000 })).toMatchObject({ output: 'finished' })
  await until(async () => (await other.sessions()).length === 0, 'the worker has stopped')
  expect(await other.get(waiting.id)).toMatchObject({ state: 'queued', attempt: 0 })
  expect(lines.filter(({ level }) => level === 'error')).toMatchObject([
    { facts: { err: { code: 'handlers_unresponsive' } } },
  ])
  finish.open()
})

test('a worker stops although a handler ignores its signal', async ({ open }) => {
  const { unresponsive, started, finish } = makeUnresponsive()
  const hf = await open({ ...fast, drainMs: 100, jobs: [unresponsive] })
  const working = await hf.work()
  const handle = await hf.submit(unresponsive, null)
  await until(() => started.length === 1, 'it runs')
  await working.stop()
  expect(await hf.get(handle.id)).toMatchObject({ state: 'queued', attempt: 1, failures: 0, crashes: 0 })
  finish.open()
})
