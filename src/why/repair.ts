/** The repairs for verdicts. Each does what the leader or a client would do, and the state machine decides whether it is still legal. */
export const repairs = {
  revive: {
    does: 'End its session if it is certainly dead, and return the job to its queue; at its crash budget, quarantine it.',
    isForOperators: false,
  },
  wake: { does: 'Wake idle workers so that one claims it.', isForOperators: false },
  'resume-queue': { does: 'Resume its queue. All jobs in the queue can run again.', isForOperators: true },
  'stop-items': { does: 'Cancel the items that no job waits for.', isForOperators: false },
  join: {
    does: 'Recount the barrier from its ledger, and return the job to its queue. Missing items count as failed.',
    isForOperators: false,
  },
  recount: { does: 'Recount the barrier from its ledger.', isForOperators: false },
  expire: {
    does: 'Stop the fan-out and cancel its remaining items. If workers of its items have died, postpone its expiry instead.',
    isForOperators: false,
  },
  requeue: {
    does: 'Return the job to its queue; the worker that claims it reopens the fan-out, or joins it.',
    isForOperators: false,
  },
  redo: {
    does: 'Re-run the job from the stage where it stopped. Committed outputs are kept.',
    isForOperators: false,
  },
  'settle-parked': {
    does: 'Write its outcome again; if the database still rejects it, mark the job as failed with the reason.',
    isForOperators: false,
  },
  replay: { does: 'Send its dead webhook deliveries again.', isForOperators: false },
  compare: {
    does: 'Recount the barrier from its ledger; if all parts have arrived, submit the continuation.',
    isForOperators: false,
  },
  close: {
    does: 'Close the expired barrier. It has no owner to notify; parts that arrive later are abandoned.',
    isForOperators: false,
  },
} as const satisfies Record<string, { does: string; isForOperators: boolean }>

/** The name of a repair. */
export type RepairName = keyof typeof repairs
