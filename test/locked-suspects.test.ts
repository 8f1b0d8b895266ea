import { defineJob, type Holdfast } from 'holdfast'
import { expect, gate, test } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const other = defineJob('other', { run: () => 'other' })
const risky = defineJob('risky', { run: () => 'risky' })
const lockReady = 'select from holdfast.ready where job_id = $1 for share'
/** Longer than a worker needs to decide that it drains for a suspect. */
const aWhileMs = 3_000

type Query = (text: string, values?: unknown[]) => Promise<unknown[]>

/** A suspect that has waited for long. */
async function suspect(hf: Holdfast, query: Query) {
  // nobody may claim it before it is a suspect
  const handle = await hf.submit(risky, null, { delayMs: 3_600_000 })
  await query(`update holdfast.ready set crashes = 2, run_at = now() - interval '1 h' where job_id = $1`, [handle.id])
  return handle
}

test('a suspect whose row a stranger keeps locked stops no other job, and runs once the row is free', async ({
  open,
  pool,
  query,
}) => {
  const [started, opened] = [gate(), gate()]
  const kept = defineJob('kept', {
    async run() {
      started.open()
      await opened.promise
    },
  })
  const hf = await open({ jobs: [kept, other, risky], concurrency: 5, pollMs: 100 })
  const locked = await suspect(hf, query)
  const release = await strangerHolds(pool, lockReady, [locked.id])
  await hf.submit(kept, null)
  await hf.work()
  await started.promise
  const untilMs = performance.now() + aWhileMs
  while (performance.now() < untilMs) {
    const next = await hf.submit(other, null)
    expect(await next.result({ timeout: 10_000 })).toMatchObject({ output: 'other' })
  }
  const behind = await suspect(hf, query)
  opened.open()
  expect(await behind.result({ timeout: 15_000 })).toMatchObject({ output: 'risky' })
  expect(await hf.get(locked.id)).toMatchObject({ state: 'queued', attempt: 0 })
  await release()
  expect(await locked.result({ timeout: 15_000 })).toMatchObject({ output: 'risky' })
}, 60_000)

test('a suspect whose row a stranger keeps locked stops no remote worker', async ({ open, pool, query }) => {
  const hf = await open({ pollMs: 100 })
  const locked = await suspect(hf, query)
  const release = await strangerHolds(pool, lockReady, [locked.id])
  const { id } = await hf.remote.open({ kinds: [{ name: 'other' }, { name: 'risky' }] })
  const claim = async () => {
    const [attempt] = await hf.remote.claim(id, { most: 1, waitMs: 10_000 })
    if (!attempt) throw new Error('Nothing was claimed.')
    await hf.remote.settle(id, [{ id: attempt.id, attempt: attempt.attempt, outcome: 'succeeded', output: null }])
    return attempt.id
  }
  const untilMs = performance.now() + aWhileMs
  while (performance.now() < untilMs) {
    const next = await hf.submit(other, null)
    expect(await claim()).toBe(next.id)
  }
  await release()
  expect(await claim()).toBe(locked.id)
}, 60_000)
