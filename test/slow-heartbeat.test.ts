import { connect, defineJob } from 'holdfast'
import { openProxy } from '#holdfast/prove/proxy'
import type { Verdict } from '#holdfast/prove/proxy-connection'
import { targetOf, throughPort } from '#holdfast/prove/target'
import { expect, gate, test, until } from './fixtures.ts'

const abortMarginMs = 400

test('a worker whose heartbeat is merely slow keeps its lock until its handlers had time to stop', async ({
  url,
  query,
}) => {
  let verdict: Verdict = 'pass'
  const proxy = await openProxy(() => targetOf(url), {
    sent: ({ name }) => (name === 'session.beat' ? verdict : 'pass'),
    held: () => {}, // the answer never comes
  })
  const started = gate()
  const aborted = gate<number>()
  const job = defineJob('waits', {
    run: ({ signal }) =>
      new Promise<void>((_, reject) => {
        signal.addEventListener('abort', () => {
          aborted.open(performance.now())
          reject(signal.reason)
        })
        started.open()
      }),
  })
  const times = { heartbeatMs: 100, lostAfterMs: 800, leaseMs: 10_000, abortMarginMs, drainMs: 0 }
  const hf = await connect({ url: throughPort(url, proxy.port), jobs: [job], logLevel: 'silent', ...times })
  await hf.work()
  await hf.submit(job, null as never)
  await started.promise
  const locks = () =>
    query(
      `select from pg_locks where locktype = 'advisory' and objsubid = 2 and database = (select oid from pg_database where datname = current_database())`,
    )
  expect(await locks()).toHaveLength(1)
  verdict = 'after'
  const abortedAtMs = await aborted.promise
  await until(async () => (await locks()).length === 0, 'the lock is gone')
  expect(performance.now() - abortedAtMs).toBeGreaterThan(abortMarginMs * 0.7)
  verdict = 'pass'
  await hf.close()
  await proxy.close()
})
