// BullMQ, on Redis or on Postgres, depending on its database. Best: many jobs at once, and finished ones removed at once, as
// its pages on concurrency and on auto-removal say. Of five pairs of both, tried in two rounds on a busy machine, this was
// the fastest on Redis; on Postgres 20 jobs at once did as well.
import { createPostgresBackend, Queue, runMigrations, Worker } from 'bullmq'
import pg from 'pg'
import { asker } from '../postgres.mjs'

const best = { concurrency: 100, removeOnComplete: { count: 0 } }

export async function install({ url, redis }) {
  if (redis) return
  const client = new pg.Client(url)
  await client.connect()
  await runMigrations(client)
  await client.end()
}

export async function open(database, { isBest }) {
  const queues = new Map()
  const queue = (task) => queues.get(task) ?? queues.set(task, newQueue(task)).get(task)
  function newQueue(task) {
    const made = new Queue(task, { connection: connectionOf(database, { isBest }) }, ...backendOf(database))
    made.on('error', () => {})
    return made
  }
  const waiting = database.redis ? undefined : await asker(database.url)
  const delayed = new Map()
  return {
    submitMany: (task, numbers) => queue(task).addBulk(numbers.map((n) => ({ name: task, data: { n } }))),
    async submit(task, n, { delayMs } = {}) {
      const job = await queue(task).add(task, { n }, delayMs ? { delay: delayMs } : {})
      if (delayMs) delayed.set(job.id, job)
      return job.id
    },
    cancel: (id) => delayed.get(id).remove(),
    read: (id, task) => queue(task).getJob(id),
    async left(task) {
      if (waiting) return (await waiting(left, [task]))[0].left
      const counts = await queue(task).getJobCounts('wait', 'active')
      return counts.wait + counts.active
    },
    async close() {
      await waiting?.end()
      await Promise.all([...queues.values()].map((one) => one.close()))
    },
  }
}

export async function worker(database, { isBest, concurrency }, { task, handler }) {
  const made = new Worker(
    task,
    ({ data }) => handler(data.n),
    {
      connection: connectionOf(database, { isBest }),
      autorun: false,
      ...(isBest && best),
      ...(concurrency && { concurrency }),
    },
    ...backendOf(database),
  )
  made.on('error', () => {})
  await made.waitUntilReady()
  return { start: async () => void made.run().catch(() => {}) }
}

function connectionOf({ url, redis }, { isBest }) {
  if (redis) return { host: '127.0.0.1', port: redis.port, maxRetriesPerRequest: null }
  return { connectionString: url, ...(isBest && { max: 20 }) }
}

function backendOf({ redis }) {
  return redis ? [] : [createPostgresBackend]
}

const left = `
  select (select count(*) from bullmq.job where queue = $1 and state = 'waiting')::int
       + (select count(*) from bullmq.job where queue = $1 and state = 'active')::int as left`

/** SQL that adds jobs that ended and jobs that are delayed for a year. Redis has no such short cut. */
export function fill(task, { finished, scheduled }) {
  const now = `(extract(epoch from now()) * 1000)::bigint`
  return [
    `insert into bullmq.job (queue, id, seq, name, state, data, added_at_ms, processed_at_ms, finished_at_ms, attempts_made, attempts_started)
     select '${task}', 'old-' || n, -n, '${task}', 'completed', '{"n":1}', ${now}, ${now}, ${now}, 1, 1 from generate_series(1, ${finished}) as n`,
    `insert into bullmq.job (queue, id, seq, name, state, data, added_at_ms, delay_ms, process_at_ms)
     select '${task}', 'later-' || n, -n, '${task}', 'delayed', '{"n":1}', ${now}, 31536000000, ${now} + 31536000000 from generate_series(1, ${scheduled}) as n`,
  ]
}
