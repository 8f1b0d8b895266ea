import type { Setting } from './setting.ts'

const day = 86_400_000

/** How many kinds and sessions the keys of a tenant may make, and how long kinds are kept that nobody serves. */
export const kindSettings = {
  kindsPerTenant: {
    type: 'whole',
    default: 500,
    min: 1,
    max: 100_000,
    about: 'Kinds that remote workers with keys of one tenant may register.',
  },
  kindsPerSession: {
    type: 'whole',
    default: 200,
    min: 1,
    max: 1_000,
    about: 'Kinds that one session of a remote worker may serve.',
  },
  sessionsPerTenant: {
    type: 'whole',
    default: 1_000,
    min: 1,
    max: 100_000,
    about: 'Sessions that remote workers with keys of one tenant may have open at once.',
  },
  kindRetentionMs: {
    type: 'whole',
    default: 30 * day,
    min: day,
    max: 3_650 * day,
    about: 'How long a kind is kept after the last worker that served it was seen.',
  },
} as const satisfies Record<string, Setting>
