import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { connect, defineJob } from 'holdfast'
import pg from 'pg'

/** Short leases, in the same relations as the defaults, so that a lost worker is missed within a second. */
const settings = {
  logLevel: 'silent',
  heartbeatMs: 100,
  lostAfterMs: 500,
  leaseMs: 2_000,
  abortMarginMs: 100,
  leaderLeaseMs: 600,
  leaderRenewMs: 150,
  sweepMs: 50,
  pollMs: 200,
  holdMs: 500,
  timeoutGraceMs: 100,
  drainMs: 1_000,
  concurrency: 10,
  batchSize: 50,
}
const storm = defineJob('storm', { crashBudget: 1_000, run: () => {} })

/** Runs one fan-out while worker processes are killed at random, and checks what is left in the database. */
export async function stormRound({ url, items = 1_000, workers = 3, everyMs = 1_000 }) {
  const hf = await connect({ url, ...settings })
  const startedMs = performance.now()
  const crew = new Set(await Promise.all(Array.from({ length: workers }, () => startWorker(url))))
  const coming = new Set()
  let kills = 0
  const killing = setInterval(() => {
    const victim = [...crew][Math.floor(Math.random() * crew.size)]
    if (!victim) return // all are still on their way up
    kills += 1
    crew.delete(victim)
    victim.kill('SIGKILL')
    const next = startWorker(url).then((worker) => crew.add(worker))
    coming.add(next.finally(() => coming.delete(next)))
  }, everyMs)
  try {
    const handle = await hf.submit(storm, { items })
    const result = await handle.result({ timeout: 120_000 })
    const ms = Math.round(performance.now() - startedMs)
    return { ms, kills, ...(await judge(hf, handle.id, items, result)) }
  } catch (error) {
    return { ms: Math.round(performance.now() - startedMs), kills, revived: 0, wrongs: [String(error)] }
  } finally {
    clearInterval(killing)
    await Promise.all(coming)
    await Promise.all([...crew].map(kill))
    await hf.close()
  }
}

async function judge(hf, id, items, { state, output }) {
  const client = new pg.Client(hf.url)
  await client.connect()
  const one = async (text) => Object.values((await client.query(text, [id])).rows[0])[0]
  const mine =
    'from holdfast.finished_job as item join holdfast.barrier on barrier.id = item.barrier_id where barrier.job_id = $1'
  const events = (type) =>
    `select count(*)::int from holdfast.event where type = '${type}' and job_id in (select item.id ${mine})`
  const facts = [
    ['final state', state, 'succeeded'],
    ['sum of all results', output?.sum, (items * (items - 1)) / 2],
    ['joins', await one(`select count(*)::int from holdfast.event where type = 'job.joined' and job_id = $1`), 1],
    ['items', await one(`select count(distinct item.position)::int ${mine} and item.state = 'succeeded'`), items],
    ['items that ended', await one(events('job.finished')), items],
    ['items alive', await one('select count(*)::int from holdfast.live_job where $1::uuid is not null'), 0],
    ['violations', JSON.stringify((await hf.audit()).violations), '[]'],
  ]
  const revived = await one(events('job.revived'))
  await client.end()
  return {
    revived,
    wrongs: facts
      .filter(([, is, should]) => is !== should)
      .map(([what, is, should]) => `${what}: ${is}, not ${should}`),
  }
}

async function startWorker(url) {
  const child = fork(fileURLToPath(new URL('storm-worker.mjs', import.meta.url)), [url, JSON.stringify(settings)], {
    stdio: 'inherit',
  })
  await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('A worker ended before it was ready.'))),
  ])
  return child
}

async function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
