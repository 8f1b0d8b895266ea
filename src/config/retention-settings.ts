import { dayMs } from '../errors/duration.ts'
import type { Setting } from './setting.ts'

/** How long finished jobs and their idempotency keys are kept. */
export const retentionSettings = {
  keepMs: {
    type: 'duration',
    default: 30 * dayMs,
    min: 0,
    max: 3_650 * dayMs,
    about: 'How long succeeded jobs are kept, unless their kind says otherwise. 0: only until they end.',
  },
  keepFailedMs: {
    type: 'duration',
    default: 90 * dayMs,
    min: 0,
    max: 3_650 * dayMs,
    about: 'How long failed, partial and cancelled jobs are kept, unless their kind says otherwise.',
  },
  keepKeysMs: {
    type: 'duration',
    default: 7 * dayMs,
    min: 0,
    max: 3_650 * dayMs,
    about: 'How long an idempotency key is kept after its job ends. A key is never removed before its job.',
  },
} as const satisfies Record<string, Setting>
