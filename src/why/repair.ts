/** What can be done about a verdict. Each is what the leader, or a client, does anyway: the law decides whether it still may. */
export const repairs = {
  revive: {
    does: 'End its session if that is dead for certain, and put the job back in its queue; at its crash budget, quarantine it.',
    isForOperators: false,
  },
  wake: { does: 'Wake the idle workers, so that one claims it.', isForOperators: false },
  'resume-queue': { does: 'Resume its queue. All jobs of the queue run again.', isForOperators: true },
  'stop-items': { does: 'Cancel the items that nobody waits for any more.', isForOperators: false },
  join: {
    does: 'Count the barrier anew by its ledger, and put the job back in its queue. Items that are gone count as failed.',
    isForOperators: false,
  },
  recount: { does: 'Count the barrier anew by its ledger.', isForOperators: false },
  expire: {
    does: 'Stop the fan-out: cancel what is left of it. If workers of its items have died, put its expiry off instead.',
    isForOperators: false,
  },
  requeue: {
    does: 'Put the job back in its queue; whoever claims it opens the fan-out anew, or joins it.',
    isForOperators: false,
  },
  redo: {
    does: 'Send the job round again, from the stage that it stopped at. What was committed is kept.',
    isForOperators: false,
  },
  'settle-parked': {
    does: 'Write its outcome once more; if the database still refuses that, write that it failed, with the reason.',
    isForOperators: false,
  },
  replay: { does: 'Send its dead webhook deliveries once more.', isForOperators: false },
  compare: {
    does: 'Count the barrier anew by its ledger; if all parts have arrived, submit the continuation.',
    isForOperators: false,
  },
  close: {
    does: 'Close the expired barrier; it has no owner to tell, and what still arrives is abandoned.',
    isForOperators: false,
  },
} as const satisfies Record<string, { does: string; isForOperators: boolean }>

/** The name of a repair. */
export type RepairName = keyof typeof repairs
