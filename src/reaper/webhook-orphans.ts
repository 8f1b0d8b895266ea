import type { OrphanClass } from './orphans.ts'

/** The part of the catalogue that is about webhooks. */
export const webhookOrphans = {
  'delivery-not-planned': {
    comesAbout:
      'The process that turns events into webhook deliveries dies, before or after it has read them; or whoever settled the job dies right after.',
    found: 'Its lease on the cursor of the group `webhooks` runs out; other processes look every readerBeatMs.',
    revived:
      'The next one reads on from the cursor, which moves in the very statement that plans: nothing twice, nothing left out.',
    bound: 'readerLeaseMs + readerBeatMs, with any process that works, reaps or delivers',
    duty: null,
    test: 'a planner that was killed with -9 is replaced, and every event is planned once',
  },
  'delivery-sender-died': {
    comesAbout:
      'kill -9, crash or freeze of a process while it sends a webhook, or before it could write how that went.',
    found: 'A claim is a time in the row: when it is over, the delivery is due.',
    revived: 'The next claim of any process sends it again, under the same id and with the same bytes.',
    bound: 'webhookTimeoutMs + 5 s + pollMs',
    duty: null,
    test: 'a webhook whose sender was killed with -9 is sent again by another, under the same id',
  },
  'endpoint-disabled-with-pending': {
    comesAbout:
      'A delivery is planned, replayed or put back at the very moment at which its endpoint is switched off or removed.',
    found: 'Whoever claims it looks at the endpoint, too.',
    revived: 'It dies unsent, with the reason, and can be replayed.',
    bound: 'pollMs',
    duty: null,
    test: 'a delivery that was planned while its endpoint was switched off dies unsent',
  },
} as const satisfies Record<string, OrphanClass>
