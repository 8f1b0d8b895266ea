import type { OrphanClass } from './orphans.ts'

/** The part of the catalogue that is about barriers whose executions others own. */
export const ownedOrphans = {
  'owned-drained-not-fired': {
    comesAbout:
      'Every part of a barrier of its own has arrived, and its continuation was never submitted: a restored backup.',
    found: 'Its count says so, its quiet row is compared with its ledger, or it expires.',
    revived: 'The continuation is submitted, under the id that it would have had: healed, not failed.',
    bound: '2 s; 10 s if its count is wrong too',
    duty: 'fireDrainedOwned',
    test: 'a drained barrier whose continuation never fired is healed, not failed',
  },
  'owned-negative-count': {
    comesAbout: 'The count of a barrier of its own was changed by hand, or by a restored backup.',
    found: 'A count below zero: whether all parts have arrived is unknown.',
    revived: 'Counted anew by the ledger, which decides.',
    bound: '2 s',
    duty: 'fireDrainedOwned',
    test: 'a negative count of parts is counted anew by the ledger',
  },
  'owned-counter-drift': {
    comesAbout: 'The count of a barrier of its own disagrees with its parts.',
    found:
      'A quiet row is compared with its ledger; so is every expired one, and every one whose last part seems to come.',
    revived: 'Counted anew by the ledger.',
    bound: '10 s after it fell quiet, 200 at a time',
    duty: 'recountOwned',
    test: 'a count of parts that drifted is counted anew by the ledger',
  },
  'owned-expired': {
    comesAbout: 'Parts of a barrier of its own have not arrived by its expiry.',
    found: 'The expiry is a column.',
    revived:
      'Its owner is asked, and marks the execution failed; without an owner the barrier is closed. Late parts are abandoned.',
    bound: 'its expiry + sweepMs + the answer of the owner',
    duty: 'askOwner',
    test: 'an execution whose barrier expired with work left is marked failed by its owner',
  },
  'owned-rearmed': {
    comesAbout: 'A barrier is armed again, or its last part comes, while its owner is asked about its expiry.',
    found: 'The arming is another one when the row is held for the mark.',
    revived: 'Nothing is marked or removed; the new expiry counts.',
    bound: 'its new expiry + sweepMs',
    duty: 'askOwner',
    test: 'a barrier that is armed again between the read and the mark is not marked',
  },
  'owned-tenant-missing': {
    comesAbout: 'A barrier with an owner has lost its tenant: a change by hand, a restored half of a backup.',
    found: 'It expires, and nobody can be asked, for an owner is asked only about an execution of a tenant.',
    revived: 'Never guessed: the row is kept and reported as an error until somebody sets the tenant or aborts it.',
    bound: 'until somebody mends it; looked at each minute',
    duty: 'askOwner',
    test: 'an expired barrier without a tenant is kept, and an error is logged',
  },
  'owner-unreachable': {
    comesAbout: 'The owner of an expired barrier is down, slow, or hidden behind a proxy that answers for it.',
    found: 'Its answer does not come, or is not its own.',
    revived: 'The row is kept; asked again after 1 s, then later and later, each minute at last.',
    bound: "the owner's return + 60 s",
    duty: 'askOwner',
    test: 'an expired barrier whose owner cannot be read is kept, and asked about again',
  },
  'owner-unclear': {
    comesAbout: 'The owner answers with a status that means nothing here, or does not mark the execution.',
    found: 'Its answers are checked: only "done" is done.',
    revived: 'The row is skipped, and asked about again as above.',
    bound: "the owner's next clear answer + 60 s",
    duty: 'askOwner',
    test: 'a mark that is answered "no" or "skipped" is not taken for done',
  },
  'owner-ended': {
    comesAbout: 'The execution behind a barrier ended by itself, or is gone, and nobody aborted the barrier.',
    found: 'It expires, and its owner says so.',
    revived: 'Nothing is overwritten; the row is removed if it is still the same arming.',
    bound: 'its expiry + sweepMs + the answer of the owner',
    duty: 'askOwner',
    test: 'an execution that has ended is never overwritten, and its barrier is cleaned up',
  },
  'owner-unknown': {
    comesAbout: 'No process that works or reaps knows the owner of an expired barrier.',
    found: 'The leader does not know the name on the row, and 10 s after the expiry nobody else has asked the owner.',
    revived: 'Never discarded: reported as an error each minute, until a process that knows the owner works or reaps.',
    bound: 'until a process with this owner works or reaps',
    duty: 'reportStrangeOwners',
    test: 'an expired barrier whose owner nobody knows is kept and reported',
  },
} as const satisfies Record<string, OrphanClass>
