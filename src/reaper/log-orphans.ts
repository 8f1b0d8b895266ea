import type { OrphanClass } from './orphans.ts'

/** The classes of orphans among the readers of the log. All of them move by themselves: cursors are rows, and leases run out. */
export const logOrphans = {
  'group-reader-died': {
    comesAbout: 'A reader of a group dies, hangs or is cut off in the middle of a batch of events.',
    found: 'A cursor whose reader has no lease is free; every reader of the group looks for free ones with each beat.',
    revived:
      'The next reader claims it with a higher term, and begins behind the last event that was noted as handled.',
    bound: 'readerLeaseMs + readerBeatMs',
    duty: null,
    test: 'a reader that is killed in the middle of an event loses nothing: the next one begins with it',
  },
  'event-kills-readers': {
    comesAbout: 'An event takes down each process that handles it.',
    found: 'The cursor counts readers that died without moving it.',
    revived:
      'From the second on, events are read one by one; after the fifth, the one to blame is parked, and the group goes on.',
    bound: '5 × (readerLeaseMs + readerBeatMs)',
    duty: null,
    test: 'an event that kills every reader is found by reading one by one, and parked',
  },
  'event-committed-late': {
    comesAbout: 'The transaction of an event commits after those of events with higher numbers.',
    found: 'No reader goes past a number while a transaction runs that may still write one below it.',
    revived: 'It is read in its place once that transaction has ended. A long one is reported.',
    bound: 'the end of the transaction + pollMs',
    duty: null,
    test: 'an event with a lower number that commits later is not skipped',
  },
} as const satisfies Record<string, OrphanClass>
