import type { OrphanClass } from './orphans.ts'

/** The orphan classes of schedules. All of them recover without the leader: every process with a reaper ticks. */
export const scheduleOrphans = {
  'slot-not-ticked': {
    comesAbout: 'The process that would submit the job of a slot, usually the leader, dies at the slot.',
    found: 'The slot is a column (next_at); every process with a reaper looks for slots that are due.',
    revived: 'Another process decides the slot. The row and the id of the job make sure that it is decided once.',
    bound: '400 ms while another process runs; otherwise as `missed` says, once one does',
    duty: null,
    test: 'a leader killed with -9 at the slot delays no slot by more than a second: none is missed, none runs twice',
  },
  'buffered-slot-forgotten': {
    comesAbout: 'A slot waits for the job of an earlier one, and the process that noted it dies.',
    found: 'The slot is a column (buffered_at); every process looks at it each second.',
    revived: 'Once the earlier job has ended, the slot is submitted.',
    bound: '1 s after the earlier job has ended',
    duty: null,
    test: 'a slot that waits for an earlier job is submitted although the process that noted it was killed with -9',
  },
  'replaced-job-not-cancelled': {
    comesAbout:
      'A slot replaces the job of an earlier one (`overlap: cancel`), and the process dies before the cancel.',
    found: 'The jobs to cancel are on the row of the schedule until they are cancelled.',
    revived: 'Another process cancels them.',
    bound: '1 s',
    duty: null,
    test: 'a replaced job is cancelled although the process that was about to cancel it was killed with -9',
  },
} as const satisfies Record<string, OrphanClass>
