// The contenders. `part` is the share of the jobs that a slow one gets to drain, so that a round ends; only its rate counts.

/** Every contender, in the order of the tables. */
export const contenders = [
  { id: 'holdfast', title: 'Holdfast, defaults', module: 'holdfast' },
  { id: 'graphile', title: 'graphile-worker, defaults', module: 'graphile-worker', part: 0.1 },
  { id: 'graphile-best', title: 'graphile-worker, best', module: 'graphile-worker', isBest: true },
  { id: 'pg-boss', title: 'pg-boss, defaults', module: 'pg-boss', part: 0.0002 },
  { id: 'pg-boss-best', title: 'pg-boss, best', module: 'pg-boss', isBest: true },
  { id: 'bullmq-pg', title: 'BullMQ on Postgres, defaults', module: 'bullmq', part: 0.02 },
  { id: 'bullmq-pg-best', title: 'BullMQ on Postgres, best', module: 'bullmq', isBest: true, part: 0.1 },
  { id: 'bullmq', title: 'BullMQ on Redis, no fsync, defaults', module: 'bullmq', redis: 'none', part: 0.2 },
  { id: 'bullmq-best', title: 'BullMQ on Redis, no fsync, best', module: 'bullmq', redis: 'none', isBest: true },
  { id: 'bullmq-aof', title: 'BullMQ on Redis, AOF always, defaults', module: 'bullmq', redis: 'always', part: 0.05 },
  {
    id: 'bullmq-aof-best',
    title: 'BullMQ on Redis, AOF always, best',
    module: 'bullmq',
    redis: 'always',
    isBest: true,
    part: 0.5,
  },
].map((contender) => ({ isBest: false, part: 1, redis: undefined, ...contender, isOurs: contender.id === 'holdfast' }))

/** A contender's adapter: install, open, worker, and fill where rows can be added by SQL. */
export function adapterOf({ module }) {
  return import(`./contenders/${module}.mjs`)
}
