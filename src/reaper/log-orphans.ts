import type { OrphanClass } from './orphans.ts'

/** The orphan classes of log readers. All of them recover on their own: cursors are rows, and leases run out. */
export const logOrphans = {
  'group-reader-died': {
    comesAbout: 'A reader of a group dies, hangs or loses its connection in the middle of a batch of events.',
    found:
      'A cursor whose reader has no lease is free; every reader of the group looks for free cursors with each heartbeat.',
    revived: 'The next reader claims it with a higher term, and continues after the last event recorded as handled.',
    bound: 'readerLeaseMs + readerBeatMs',
    duty: null,
    test: 'a reader that is killed in the middle of an event loses nothing: the next one begins with it',
  },
  'event-kills-readers': {
    comesAbout: 'An event crashes every process that handles it.',
    found: 'The cursor counts readers that died without advancing it.',
    revived:
      'From the second death on, events are read one by one; after the fifth, the event that causes it is parked, and the group continues.',
    bound: '5 × (readerLeaseMs + readerBeatMs)',
    duty: null,
    test: 'an event that kills every reader is found by reading one by one, and parked',
  },
  'event-committed-late': {
    comesAbout: 'The transaction of an event commits after transactions of events with higher numbers.',
    found: 'No reader advances past a number while a running transaction may still write a lower one.',
    revived: 'The event is read in order once that transaction has ended. Long transactions are reported.',
    bound: 'the end of the transaction + pollMs',
    duty: null,
    test: 'an event with a lower number that commits later is not skipped',
  },
} as const satisfies Record<string, OrphanClass>
