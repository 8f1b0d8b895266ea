// graphile-worker. Best: the batching that its options document for many fast tasks. The sizes were chosen, not searched for.
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { asker } from '../postgres.mjs'

// its default logger writes two lines a job, which would measure the terminal
const logger = new Logger(() => () => {})
const best = {
  concurrentJobs: 100,
  maxPoolSize: 20,
  localQueue: { size: 5000 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
}

export async function install({ url }) {
  const utils = await makeWorkerUtils({ connectionString: url, logger })
  await utils.migrate()
  await utils.release()
}

export async function open({ url }, { isBest }) {
  const utils = await makeWorkerUtils({ connectionString: url, logger, ...(isBest && { maxPoolSize: 20 }) })
  const ask = await asker(url)
  const [{ highest }] = await ask('select coalesce(max(id), 0) as highest from graphile_worker._private_jobs')
  return {
    submitMany: (task, numbers) => utils.addJobs(numbers.map((n) => ({ identifier: task, payload: { n } }))),
    submit: async (task, n, { delayMs } = {}) =>
      (await utils.addJob(task, { n }, delayMs ? { runAt: new Date(Date.now() + delayMs) } : {})).id,
    // it has no cancel; this is the documented way to make a job go that waits
    cancel: (id) => utils.completeJobs([id]),
    // it has no read either, but a documented view
    read: (id) =>
      utils.withPgClient((client) => client.query('select * from graphile_worker.jobs where id = $1', [id])),
    left: async () =>
      (await ask('select count(*)::int as left from graphile_worker._private_jobs where id > $1', [highest]))[0].left,
    async close() {
      await ask.end()
      await utils.release()
    },
  }
}

export async function worker({ url }, { isBest, concurrency }, { task, handler }) {
  return {
    start: () =>
      run({
        connectionString: url,
        noHandleSignals: true,
        logger,
        taskList: { [task]: ({ n }) => handler(n) },
        parsedCronItems: [],
        preset: {
          worker: {
            ...(isBest && best),
            ...(concurrency && { concurrentJobs: concurrency, maxPoolSize: concurrency }),
          },
        },
      }),
  }
}

/** It deletes what is finished, so there are only the scheduled ones to add. */
export function fill(task, { scheduled }) {
  return [
    `insert into graphile_worker._private_tasks (identifier) values ('${task}') on conflict do nothing`,
    `insert into graphile_worker._private_jobs (task_id, payload, run_at)
     select id, '{"n":1}', now() + interval '1 year'
     from graphile_worker._private_tasks cross join generate_series(1, ${scheduled}) where identifier = '${task}'`,
  ]
}
