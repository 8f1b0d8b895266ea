import type { OrphanClass } from './orphans.ts'

/** The orphan classes of bulk operations. */
export const bulkOrphans = {
  'bulk-process-died': {
    comesAbout: 'kill -9, crash or freeze of a process in the middle of a bulk operation.',
    found: 'Its lease on the row of the operation runs out; every process with a reaper looks for such rows.',
    revived:
      'Another process continues after the last page that was committed. Each page commits with its progress, so no job is changed twice or passed over.',
    bound: 'leaseMs + 2 s, if any process works or reaps',
    duty: null,
    test: 'a bulk operation whose process was killed with -9 goes on elsewhere, and changes every job once',
  },
} as const satisfies Record<string, OrphanClass>
