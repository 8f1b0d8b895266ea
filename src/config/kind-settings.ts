import { dayMs } from '../errors/duration.ts'
import type { Setting } from './setting.ts'

/** How many kinds and sessions the keys of a tenant may create, and how long unserved kinds are kept. */
export const kindSettings = {
  kindsPerTenant: {
    type: 'whole',
    default: 500,
    min: 1,
    max: 100_000,
    about: 'Maximum number of kinds that remote workers with keys of one tenant may register.',
  },
  kindsPerSession: {
    type: 'whole',
    default: 200,
    min: 1,
    max: 1_000,
    about: 'Maximum number of kinds that one remote worker session may serve.',
  },
  sessionsPerTenant: {
    type: 'whole',
    default: 1_000,
    min: 1,
    max: 100_000,
    about: 'Maximum number of sessions that remote workers with keys of one tenant may have open.',
  },
  kindRetentionMs: {
    type: 'whole',
    default: 30 * dayMs,
    min: dayMs,
    max: 3_650 * dayMs,
    about: 'How long a kind is kept after a worker that serves it was last seen.',
  },
} as const satisfies Record<string, Setting>
