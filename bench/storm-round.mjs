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
  concurrency: 8,
  batchSize: 50,
}
const storm = defineJob('storm', { crashBudget: 1_000, run: () => {} })

/** Runs one fan-out while worker processes are killed at random, and checks what is left in the database. */
export async function stormRound({ url, workerUrl = url, items = 1_000, workers = 4, everyMs = 1_000 }) {
  const hf = await connect({ url, ...settings })
  const startedMs = performance.now()
  // a process takes longer to start than it lives in a storm, so replacements are started ahead
  const spawned = new Set()
  const spawn = () => {
    const worker = spawnWorker(spawned)
    // one that ends while it stands by is reported when its turn comes
    worker.catch(() => {})
    return worker
  }
  const standby = Array.from({ length: workers + 2 }, spawn)
  const active = new Set()
  const addWorker = async () => {
    const worker = standby.shift()
    standby.push(spawn())
    await startWorking(await worker, workerUrl)
    active.add(await worker)
  }
  const adding = new Set()
  let kills = 0
  let fail
  const failed = new Promise((_, reject) => {
    fail = reject
  })
  failed.catch(() => {})
  const killing = setInterval(() => {
    const victim = [...active][Math.floor(Math.random() * active.size)]
    // if processes are slow to start, the last worker is spared until there are others
    if (active.size < 2) return
    kills += 1
    active.delete(victim)
    victim.kill('SIGKILL')
    const added = addWorker()
      .catch(fail)
      .finally(() => adding.delete(added))
    adding.add(added)
  }, everyMs)
  try {
    await Promise.all(Array.from({ length: workers }, addWorker))
    const handle = await hf.submit(storm, { items })
    const result = await Promise.race([handle.result({ timeout: 300_000 }), failed])
    const ms = Math.round(performance.now() - startedMs)
    return { ms, kills, ...(await judge(hf, handle.id, items, result)) }
  } catch (error) {
    const wrongs = [String(error), JSON.stringify(await left(hf.url))]
    return { ms: Math.round(performance.now() - startedMs), kills, revived: 0, wrongs }
  } finally {
    clearInterval(killing)
    await Promise.all([...spawned].map(kill))
    await Promise.all(adding)
    await hf.close()
  }
}

/** The live jobs, for diagnosis of a round that did not end. */
async function left(url) {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query(
    'select state, is_part, crashes, count(*)::int from holdfast.job_status where finished_at is null group by 1, 2, 3 order by 1, 2, 3',
  )
  await client.end()
  return rows
}

async function judge(hf, id, items, { state, output }) {
  const client = new pg.Client(hf.url)
  await client.connect()
  const one = async (text) => Object.values((await client.query(text, [id])).rows[0])[0]
  const mine =
    'from holdfast.outcome as ended join holdfast.job as item on item.id = ended.job_id join holdfast.barrier on barrier.id = item.barrier_id where barrier.job_id = $1'
  const events = (type) =>
    `select count(*)::int from holdfast.event where type = '${type}' and job_id in (select item.id ${mine})`
  const facts = [
    ['final state', state, 'succeeded'],
    ['sum of all results', output?.sum, (items * (items - 1)) / 2],
    ['joins', await one(`select count(*)::int from holdfast.event where type = 'job.joined' and job_id = $1`), 1],
    ['items', await one(`select count(distinct item.position)::int ${mine} and ended.state = 'succeeded'`), items],
    ['items that ended', await one(events('job.finished')), items],
    [
      'items alive',
      await one('select count(*)::int from holdfast.job_status where finished_at is null and $1::uuid is not null'),
      0,
    ],
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

/** Starts a process that is ready to work, but does not work yet. */
async function spawnWorker(spawned) {
  const child = fork(fileURLToPath(new URL('storm-worker.mjs', import.meta.url)))
  spawned.add(child)
  child.once('exit', () => spawned.delete(child))
  await heard(child)
  return child
}

/** Waits for the next message of a process. One that ends before it could work never sends it. */
function heard(child) {
  return new Promise((resolve, reject) => {
    const ended = (code, signal) =>
      reject(new Error(`A worker ended before it could work: ${signal ?? `code ${code}`}.`))
    if (child.exitCode !== null || child.signalCode !== null) ended(child.exitCode, child.signalCode)
    child.once('exit', ended)
    child.once('message', (message) => {
      child.off('exit', ended)
      resolve(message)
    })
  })
}

/** Lets a process work. */
async function startWorking(child, url) {
  const works = heard(child)
  // if the process has ended, the message can't be sent, and its end is the better report
  child.send({ url, ...settings }, () => {})
  await works
}

async function kill(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
