// Holdfast, with nothing set: no setting is given to it but where its database is and how many handlers a recovery needs.
import { connect, defineJob } from '../../../dist/index.js'
import { asker } from '../postgres.mjs'

const kindOf = (task, run = () => undefined) => defineJob(task, { run: ({ input }) => run(input.n) })

export async function install({ url }) {
  const hf = await connect({ url, migrate: true, logLevel: 'silent' })
  await hf.close()
}

export async function open({ url }) {
  const hf = await connect({ url, logLevel: 'silent' })
  const ask = await asker(url)
  const kinds = new Map()
  const kind = (task) => kinds.get(task) ?? kinds.set(task, kindOf(task)).get(task)
  return {
    submitMany: (task, numbers) =>
      hf.submitMany(
        kind(task),
        numbers.map((n) => ({ input: { n } })),
      ),
    submit: async (task, n, { delayMs } = {}) => (await hf.submit(kind(task), { n }, delayMs ? { delayMs } : {})).id,
    cancel: (id) => hf.cancel(id),
    read: (id) => hf.get(id),
    left: async (task) => (await ask(left, [task]))[0].left,
    async close() {
      await ask.end()
      await hf.close()
    },
  }
}

export async function worker({ url }, { concurrency }, { task, handler }) {
  const hf = await connect({
    url,
    jobs: [kindOf(task, handler)],
    logLevel: 'silent',
    ...(concurrency && { concurrency }),
  })
  return { start: () => hf.work() }
}

// each half by an index of its own, so that asking costs next to nothing beside a million rows
const left = `
  select (select count(*) from holdfast.ready
          where queue = 'default' and kind = $1 and priority = any ('{1,2,3,4}') and run_at <= now())::int
       + (select coalesce(sum(length(done) - bit_count(done)), 0) from holdfast.lease)::int as left`

/** SQL that adds jobs that ended, with all that Holdfast keeps of them, and jobs that are not due for a year. */
export function fill(task, { finished, scheduled }) {
  return [
    `create temp table old as select gen_random_uuid() as id from generate_series(1, ${finished})`,
    `insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input)
     select id, now(), 3, 2, '${task}', 'default', 'default', '{"n":1}' from old`,
    `insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state)
     select id, '${task}', 'default', now(), 1, 0, 0, 0, false, 'succeeded' from old`,
    `create temp table later as select gen_random_uuid() as id from generate_series(1, ${scheduled})`,
    `insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input)
     select id, now(), 3, 2, '${task}', 'default', 'default', '{"n":1}' from later`,
    `insert into holdfast.ready (job_id, run_at, crash_budget, priority, kind, queue, tenant)
     select id, now() + interval '1 year', 3, 2, '${task}', 'default', 'default' from later`,
    'drop table old, later',
  ]
}
