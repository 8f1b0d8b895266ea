import type { Setting } from './setting.ts'

/** How long the lease of a session lasts, how often it is renewed, and when a worker without it aborts its jobs. */
export const leaseSettings = {
  heartbeatMs: { type: 'whole', default: 1_000, min: 50, max: 60_000, about: 'How often a session renews its lease.' },
  lostAfterMs: {
    type: 'whole',
    default: 3_000,
    min: 200,
    max: 600_000,
    about: 'Age of the last heartbeat after which a session counts as dead if its lock is gone.',
  },
  leaseMs: {
    type: 'whole',
    default: 15_000,
    min: 500,
    max: 3_600_000,
    about: 'Age of the last heartbeat after which any session counts as dead.',
  },
  abortMarginMs: {
    type: 'whole',
    default: 500,
    min: 50,
    max: 60_000,
    about:
      'Safety margin: a worker that cannot confirm its lease aborts its jobs this long before they could be reassigned.',
  },
} as const satisfies Record<string, Setting>
