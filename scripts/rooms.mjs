/**
 * The rooms of src/, from left to right, with what each holds. A room imports only from groups to its left; rooms in the same group don't
 * import each other. scripts/layers.mjs enforces this, and the docs list it.
 */
export const rooms = [
  { errors: 'error codes and the shape of error messages', client: 'the typed HTTP client' },
  {
    job: 'the state machine, kinds and stages, ids and fences, what can be stored',
    config: 'every setting, and how settings constrain each other',
    service: 'things that start and stop: loops, timers, write groups',
    trace: 'OpenTelemetry spans, if the process has a tracer',
  },
  { postgres: 'connections, the pool, SQL templates, what counts as a broken connection' },
  { embedded: 'the Postgres that ships with the package' },
  { transitions: 'SQL shared by claims, settles and recovery: leases, endings, cancel, wake-ups, batches' },
  { schema: 'migrations, and the functions, views and guards in the database that are derived from code' },
  { bus: 'wake-ups by NOTIFY' },
  {
    submit: 'checking and inserting jobs, cancel, redo, other libraries’ transactions',
    settle: 'writing how attempts ended, in batches',
    'fan-out': 'items of a stage: adding them, counting them, joining',
    barrier: 'barriers over executions that another system owns',
    events: 'the event log: readers, groups, parked events, the horizon',
    leader: 'electing one leader at a time',
    limits: 'limits on kinds, queues and keys, and fairness between tenants: setting and showing them',
  },
  { schedule: 'slots of cron patterns and intervals, the ticker that submits their jobs, and their history' },
  {
    worker: 'sessions and heartbeats, claiming, running handlers, progress',
    reaper: 'the orphan catalogue, the duties, the recovery bound, retention',
    audit: 'the invariants',
    webhooks: 'planning, sending, signing and retrying deliveries; which addresses are allowed',
  },
  { remote: 'workers that claim and settle over HTTP' },
  { why: 'what every source says about a job, the verdict, and repairs' },
  { reads: 'jobs, lists, results, queues, sessions, kinds, throughput' },
  {
    keys: 'API keys',
    metrics: 'counters, and what a scrape returns',
    bulk: 'bulk operations over jobs, and failed jobs by error',
  },
  { engine: 'what `connect` returns; wires rooms together and decides nothing' },
  { http: 'the HTTP server and its operations', prove: 'the fault prover', bench: 'what `holdfast bench` measures' },
  { cli: 'the commands', index: 'what the package exports' },
]

/** The rooms of each group, from left to right. */
export const groups = rooms.map((group) => Object.keys(group))
