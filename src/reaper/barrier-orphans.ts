import type { OrphanClass } from './orphans.ts'

/** The orphan classes of barriers whose executions another system owns. */
export const ownedOrphans = {
  'owned-drained-not-fired': {
    comesAbout:
      'All parts of a standalone barrier have arrived, but its continuation was never submitted, as after restoring a backup.',
    found: 'Its count shows it. Otherwise, it is compared with its ledger when it is quiet or expires.',
    revived: 'The continuation is submitted under its original id: healed, not failed.',
    bound: '2 s; 10 s if its count is wrong too',
    duty: 'fireDrainedOwned',
    test: 'a drained barrier whose continuation never fired is healed, not failed',
  },
  'owned-negative-count': {
    comesAbout: 'Someone changed the count of a standalone barrier by hand, or restored a backup.',
    found: 'The count is below zero, so it is unknown whether all parts have arrived.',
    revived: 'The parts are recounted from the ledger, which decides.',
    bound: '2 s',
    duty: 'fireDrainedOwned',
    test: 'a negative count of parts is recounted from the ledger',
  },
  'owned-counter-drift': {
    comesAbout: 'The count of a standalone barrier disagrees with its parts.',
    found:
      'A barrier is compared with its ledger when it is quiet, when it expires, and when its last part seems to arrive.',
    revived: 'The parts are recounted from the ledger.',
    bound: '10 s after it goes quiet, 200 at a time',
    duty: 'recountOwned',
    test: 'a count of parts that drifted is recounted from the ledger',
  },
  'owned-expired': {
    comesAbout: 'Some parts of a standalone barrier have not arrived by its expiry.',
    found: 'The expiry is a column.',
    revived:
      'The owner is asked, and marks the execution failed; a barrier without an owner is closed. Late parts are abandoned.',
    bound: 'its expiry + sweepMs + the response time of the owner',
    duty: 'askOwner',
    test: 'an execution whose barrier expired with work left is marked failed by its owner',
  },
  'owned-rearmed': {
    comesAbout: 'A barrier is re-armed, or its last part arrives, while its owner is being asked about its expiry.',
    found: 'The arming has changed by the time the row is locked for the mark.',
    revived: 'Nothing is marked or removed; the new expiry applies.',
    bound: 'its new expiry + sweepMs',
    duty: 'askOwner',
    test: 'a barrier that is re-armed between the read and the mark is not marked',
  },
  'owned-tenant-missing': {
    comesAbout: 'A barrier with an owner has lost its tenant through a manual change or a partially restored backup.',
    found: 'It expires, and the owner cannot be asked, because every request to an owner names a tenant.',
    revived:
      'The tenant is never guessed: the row is kept and reported as an error until someone sets the tenant or aborts the barrier.',
    bound: 'until someone fixes it; checked every minute',
    duty: 'askOwner',
    test: 'an expired barrier without a tenant is kept, and an error is logged',
  },
  'owner-unreachable': {
    comesAbout: 'The owner of an expired barrier is down, slow, or behind a proxy that answers for it.',
    found: 'The owner does not respond, or the response is not its own.',
    revived: 'The row is kept, and the owner is asked again after 1 s, then at growing intervals of up to a minute.',
    bound: "the owner's recovery + 60 s",
    duty: 'askOwner',
    test: 'an expired barrier whose owner cannot be read is kept, and asked about again',
  },
  'owner-unclear': {
    comesAbout: 'The owner responds with an unknown status, or does not mark the execution.',
    found: 'Responses are validated: only "done" counts as done.',
    revived: 'The row is skipped, and the owner is asked again as above.',
    bound: "the owner's next clear answer + 60 s",
    duty: 'askOwner',
    test: 'a mark that is answered "no" or "skipped" is not taken for done',
  },
  'owner-ended': {
    comesAbout: 'The execution behind a barrier ended on its own, or is gone, and nobody aborted the barrier.',
    found: 'The barrier expires, and its owner reports it.',
    revived: 'Nothing is overwritten; the row is removed if the arming has not changed.',
    bound: 'its expiry + sweepMs + the response time of the owner',
    duty: 'askOwner',
    test: 'an execution that has ended is never overwritten, and its barrier is cleaned up',
  },
  'owner-unknown': {
    comesAbout: 'The owner of an expired barrier is not configured in any process that runs a worker or reaper.',
    found: 'The leader does not know the owner, and 10 s after the expiry no other process has asked it.',
    revived: 'The barrier is never discarded: it is reported as an error every minute until such a process starts.',
    bound: 'until a process with this owner runs a worker or reaper',
    duty: 'reportStrangeOwners',
    test: 'an expired barrier whose owner nobody knows is kept and reported',
  },
} as const satisfies Record<string, OrphanClass>
