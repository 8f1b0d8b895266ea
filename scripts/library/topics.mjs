/**
 * The pages of the library reference, in order. An export goes to the first page that names it, its entry point, its file or the folder
 * of its file; the generator fails for one without a page.
 */
export const topics = [
  {
    page: 'connect',
    title: 'Connect and work',
    about: 'Connect to a database, bring its schema up to date, and run workers.',
    holds: ['engine/connect', 'engine/work', 'schema/migrate'],
  },
  {
    page: 'holdfast',
    title: 'The Holdfast handle',
    about: 'Everything that `connect` returns, called `hf` in these pages.',
    holds: ['Holdfast', 'Reads'],
  },
  {
    page: 'jobs',
    title: 'Define jobs',
    about: 'Kinds, stages, fan-outs, and what a handler receives.',
    holds: [
      'job/define',
      'job/fan-out',
      'job/wait',
      'job/id',
      'worker/attempt',
      'worker/snooze',
      'PermanentError',
      'RateLimited',
    ],
  },
  {
    page: 'limits',
    title: 'Limits and fairness',
    about: 'What `hf.limits` takes and returns, and the limit of a kind.',
    holds: ['limits/limits', 'job/limit'],
  },
  {
    page: 'submit',
    title: 'Submit jobs',
    about: 'The options of `hf.submit`, the handle of a job, and its result.',
    holds: ['SubmitHow', 'Result', 'submit/prepare', 'job/unique', 'engine/handle'],
  },
  {
    page: 'flow',
    title: 'Middleware, listeners and signals',
    about: 'The options of `connect({ middleware })`, `hf.on` and `hf.signal`.',
    holds: ['job/middleware', 'engine/listeners', 'engine/signal'],
  },
  {
    page: 'transactions',
    title: 'Transactions',
    about: 'Submit inside a transaction of `pg`, Kysely or Drizzle.',
    holds: ['postgres/store', 'holdfast/kysely', 'holdfast/drizzle'],
  },
  {
    page: 'reads',
    title: 'Jobs, queues and workers',
    about: 'The options and results of the methods that read.',
    holds: [
      'reads/reads',
      'reads/job',
      'reads/list-filter',
      'reads/page',
      'reads/fan-outs',
      'reads/kinds',
      'reads/queues',
      'reads/sessions',
      'reads/recovery',
      'reads/throughput',
      'engine/prune',
      'reaper',
    ],
  },
  {
    page: 'why',
    title: 'Why a job is where it is',
    about: 'The results of `hf.why` and `hf.repair`.',
    holds: ['engine/why', 'why'],
  },
  {
    page: 'events',
    title: 'Events',
    about: 'The log of changes: `hf.events`.',
    holds: ['events/events', 'events/group', 'events', 'job/event-type'],
  },
  {
    page: 'webhooks',
    title: 'Webhooks',
    about: 'Endpoints, deliveries, and replays: `hf.webhooks`.',
    holds: [
      'webhooks/webhooks',
      'webhooks/endpoints',
      'webhooks/deliveries',
      'webhooks',
      'job/delivery-state',
      'job/scope',
    ],
  },
  {
    page: 'schedules',
    title: 'Schedules',
    about: 'Submit jobs by cron patterns or at intervals: `hf.schedules`.',
    holds: ['schedule/schedules', 'schedule/schedule', 'schedule', 'job/schedule'],
  },
  {
    page: 'barriers',
    title: 'Barriers',
    about: 'Wait for executions that another system owns: `hf.barrier`.',
    holds: ['engine/barriers', 'barrier'],
  },
  {
    page: 'bulk',
    title: 'Bulk operations and failures',
    about: 'Change many jobs at once, and group failed jobs by error.',
    holds: ['bulk'],
  },
  {
    page: 'remote',
    title: 'Remote workers',
    about: 'What a server does for workers without a database connection: `hf.remote`.',
    holds: ['remote', 'worker'],
  },
  {
    page: 'keys',
    title: 'API keys',
    about: 'Create, list and revoke the keys of the HTTP API: `hf.keys`.',
    holds: ['keys/keys'],
  },
  {
    page: 'states-and-errors',
    title: 'States and errors',
    about: 'The states of a job, what may happen in each, and the errors that Holdfast throws.',
    holds: ['job/machine', 'errors'],
  },
  {
    page: 'client',
    title: 'The HTTP client',
    about: 'A typed client of the HTTP API, for Node and browsers.',
    holds: ['holdfast/client'],
  },
  {
    page: 'http',
    title: 'The HTTP API in your own server',
    about: 'Serve the HTTP API from any server with a fetch handler.',
    holds: ['holdfast/http'],
  },
]

/** The page of an export. */
export function topicOf({ name, from, file }) {
  // an entry point of its own says more than a file: what it exports is imported together
  const keys = from === 'holdfast' ? [name, file, file.split('/')[0]] : [from]
  for (const key of keys) {
    const topic = topics.find(({ holds }) => holds.includes(key))
    if (topic) return topic
  }
  throw new Error(`The export ${name} of ${from} has no page; add its file, ${file}, to scripts/library/topics.mjs.`)
}
