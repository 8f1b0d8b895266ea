import { dayMs } from '../errors/duration.ts'
import type { Setting } from './setting.ts'

/** When a slot of a schedule counts as missed, how many schedules a tenant may have, and how long their history is kept. */
export const scheduleSettings = {
  scheduleMissedAfterMs: {
    type: 'duration',
    default: 60_000,
    min: 1_000,
    max: dayMs,
    about: 'How late a slot of a schedule may run before it counts as missed.',
  },
  schedulesPerTenant: {
    type: 'whole',
    default: 10_000,
    min: 1,
    max: 1_000_000,
    about: 'Maximum number of schedules of one tenant.',
  },
  scheduleHistoryMs: {
    type: 'duration',
    default: 90 * dayMs,
    min: dayMs,
    max: 3_650 * dayMs,
    about: 'How long the history of schedules is kept, up to 1,000 slots of each.',
  },
} as const satisfies Record<string, Setting>
