// pg-boss. Best: large batches, two pollers that go on while batches are full, and NOTIFY where latency is measured: it
// costs a lock at each commit, so a throughput measure goes without it. The sizes were chosen, not searched for.
import { PgBoss } from 'pg-boss'
import { asker } from '../postgres.mjs'

const tasks = ['noop', 'stamp', 'hang']
const best = { batchSize: 5000, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }

export async function install({ url }, { isBest, wantsLatency }) {
  const boss = await started({ connectionString: url })
  for (const task of tasks) await boss.createQueue(task, isBest && wantsLatency ? { notify: true } : {})
  await boss.stop({ graceful: false })
}

export async function open({ url }, { isBest }) {
  const boss = await started({ connectionString: url, ...(isBest && { max: 20, supervise: false, schedule: false }) })
  const ask = await asker(url)
  const [{ pages }] = await ask(`select pg_relation_size('pgboss.job_common') / 8192 as pages`)
  const queueOf = new Map()
  return {
    submitMany: (task, numbers) =>
      boss.insert(
        task,
        numbers.map((n) => ({ data: { n } })),
      ),
    async submit(task, n, { delayMs } = {}) {
      const id = await boss.send(task, { n }, delayMs ? { startAfter: new Date(Date.now() + delayMs) } : {})
      if (delayMs) queueOf.set(id, task)
      return id
    },
    cancel: (id) => boss.cancel(queueOf.get(id), id),
    read: (id, task) => boss.getJobById(task, id),
    // no index leads to the active ones, so it looks at the pages that were written since: cheap beside a million rows
    left: async (task) =>
      (
        await ask(
          `select count(*)::int as left from pgboss.job_common
           where ctid >= '(${Math.max(0, pages - 1)},0)'::tid and name = $1 and state < 'completed' and start_after <= now()`,
          [task],
        )
      )[0].left,
    async close() {
      await ask.end()
      await boss.stop({ graceful: false })
    },
  }
}

export async function worker({ url }, { isBest, wantsLatency, concurrency }, { task, handler }) {
  const boss = await started({
    connectionString: url,
    ...(isBest && { max: 20 }),
    ...(isBest && wantsLatency && { useListenNotify: true }),
  })
  const options = { ...(isBest && best), ...(concurrency && { localConcurrency: concurrency, batchSize: 1 }) }
  return { start: () => boss.work(task, options, (jobs) => Promise.all(jobs.map(({ data }) => handler(data.n)))) }
}

async function started(options) {
  const boss = new PgBoss(options)
  boss.on('error', () => {})
  await boss.start()
  return boss
}

/** SQL that adds jobs that ended and jobs that are not due for a year, as `insert` and `complete` leave them. */
export function fill(task, { finished, scheduled }) {
  const columns = 'name, data, policy, state, started_on, completed_on, start_after'
  return [
    `insert into pgboss.job (${columns})
     select '${task}', '{"n":1}', 'standard', 'completed', now(), now(), now() from generate_series(1, ${finished})`,
    `insert into pgboss.job (${columns})
     select '${task}', '{"n":1}', 'standard', 'created', null, null, now() + interval '1 year' from generate_series(1, ${scheduled})`,
  ]
}
