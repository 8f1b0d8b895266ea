import type { OrphanClass } from './orphans.ts'

/** The orphan classes of limits. */
export const gateOrphans = {
  'gate-closed': {
    comesAbout: 'A gate was closed or removed by hand, or by a restore, while jobs wait at it and slots are free.',
    found: 'A key with due jobs, a free slot, and no open gate and no hint.',
    revived: 'A hint is left, and the next claim opens the gate.',
    bound: '10 s for each 1,000 keys',
    duty: 'reopenGates',
    test: 'a gate that was closed by hand is opened again',
  },
  'limit-without-gate': {
    comesAbout: 'A process dies while it sets a limit, or a submit commits after the limit that it did not see.',
    found: 'Queued jobs without a gate, of a kind or queue that has a limit.',
    revived: 'They are sent to their gates.',
    bound:
      '1 s for each 10,000 queued jobs; 10 s for each 5,000 if the submit commits more than a minute after the limit',
    duty: 'reopenGates',
    test: 'jobs that were queued before a limit was set wait at its gate',
  },
} as const satisfies Record<string, OrphanClass>
