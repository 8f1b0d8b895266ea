import { defineJob } from 'holdfast'
import { expect, gate, test, until } from './fixtures.ts'
import { strangerHolds } from './hold.ts'

const leaseOf = 'select from holdfast.lease where $1::uuid = any(job_ids) for update'
/** Makes a job that isn't due a suspect that has waited since that time. */
const makeSuspect = 'update holdfast.ready set crashes = 2, run_at = $2::timestamptz where job_id = $1'
const longAgo = () => new Date(Date.now() - 3_600_000)

/** Kinds of which one waits at a gate, and whether the outcome of one was reported as late. */
function made() {
  const opened = gate()
  const starts: string[] = []
  const kept = defineJob('kept', {
    async run({ job }) {
      starts.push(job.id)
      await opened.promise
      return 'kept'
    },
  })
  const other = defineJob('other', { run: () => 'other' })
  const risky = defineJob('risky', { run: () => 'risky' })
  let isLate = false
  const note = (facts: object) => {
    const { err } = facts as { err?: Error }
    if (err && /could not be written yet/.test(err.message)) isLate = true
  }
  const log = { debug: () => {}, info: () => {}, warn: note, error: note }
  const options = { jobs: [kept, other, risky], concurrency: 5, pollMs: 100, log }
  return { kept, other, risky, starts, letGo: opened.open, isLate: () => isLate, options }
}

/** Nobody may claim a job before it is a suspect. */
const later = { delayMs: 3_600_000 }

test('a worker whose outcome waits for a locked row runs a suspect that nobody else takes, and goes on with other jobs', async ({
  open,
  pool,
  query,
}) => {
  const { kept, other, risky, starts, letGo, isLate, options } = made()
  const hf = await open(options)
  const stuck = await hf.submit(kept, null)
  await hf.work()
  await until(() => starts.length === 1, 'it runs')
  const release = await strangerHolds(pool, leaseOf, [stuck.id])
  letGo()
  await until(isLate, 'its outcome is late')
  const suspect = await hf.submit(risky, null, later)
  await query(makeSuspect, [suspect.id, longAgo()])
  expect(await suspect.result({ timeout: 15_000 })).toMatchObject({ output: 'risky' })
  const next = await hf.submit(other, null)
  expect(await next.result({ timeout: 15_000 })).toMatchObject({ output: 'other' })
  expect(await hf.get(stuck.id)).toMatchObject({ state: 'running', attempt: 1 })
  await release()
  expect(await stuck.result({ timeout: 15_000 })).toMatchObject({ output: 'kept' })
  expect(starts).toHaveLength(1)
}, 60_000)

test('a suspect whose own outcome waits for a locked row keeps its worker from no other job', async ({
  open,
  pool,
  query,
}) => {
  const { kept, other, risky, starts, letGo, isLate, options } = made()
  const hf = await open(options)
  const stuck = await hf.submit(kept, null, later)
  await query(makeSuspect, [stuck.id, new Date()])
  await hf.work()
  await until(() => starts.length === 1, 'the suspect runs')
  const release = await strangerHolds(pool, leaseOf, [stuck.id])
  letGo()
  await until(isLate, 'its outcome is late')
  // a suspect might kill the worker, so the next one waits for another worker at first
  const early = await hf.submit(risky, null, later)
  await query(makeSuspect, [early.id, new Date()])
  for (let count = 0; count < 3; count++) {
    const next = await hf.submit(other, null)
    expect(await next.result({ timeout: 15_000 })).toMatchObject({ output: 'other' })
  }
  expect(await hf.get(early.id)).toMatchObject({ state: 'queued', attempt: 0 })
  await query(makeSuspect, [early.id, longAgo()])
  expect(await early.result({ timeout: 15_000 })).toMatchObject({ output: 'risky' })
  await release()
  expect(await stuck.result({ timeout: 15_000 })).toMatchObject({ output: 'kept' })
  expect(starts).toHaveLength(1)
}, 60_000)
