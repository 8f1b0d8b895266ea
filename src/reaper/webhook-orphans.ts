import type { OrphanClass } from './orphans.ts'

/** The orphan classes of webhooks. */
export const webhookOrphans = {
  'delivery-not-planned': {
    comesAbout:
      'The process that turns events into webhook deliveries dies before or after it reads them, or the worker that settled the job dies right after.',
    found: 'Its lease on the cursor of the group `webhooks` runs out; other processes check every readerBeatMs.',
    revived:
      'The next process continues from the cursor, which advances in the same statement that plans: no event is planned twice or skipped.',
    bound: 'readerLeaseMs + readerBeatMs, if any process runs a worker, a reaper or `hf.deliver()`',
    duty: null,
    test: 'a planner that was killed with -9 is replaced, and every event is planned once',
  },
  'delivery-sender-died': {
    comesAbout: 'kill -9, crash or freeze of a process while it sends a webhook, or before it records the outcome.',
    found: 'A claim is a time in the row: once it passes, the delivery is due again.',
    revived: 'The next process that claims it sends it again with the same id and the same bytes.',
    bound: 'webhookTimeoutMs + 5 s + pollMs',
    duty: null,
    test: 'a webhook whose sender was killed with -9 is sent again by another, under the same id',
  },
  'endpoint-disabled-with-pending': {
    comesAbout: 'A delivery is planned, replayed or put back at the moment its endpoint is disabled or removed.',
    found: 'The process that claims it checks the endpoint as well.',
    revived: 'It becomes a dead letter without being sent. The reason is recorded, and it can be replayed.',
    bound: 'pollMs',
    duty: null,
    test: 'a delivery that was planned while its endpoint was disabled becomes a dead letter without being sent',
  },
} as const satisfies Record<string, OrphanClass>
