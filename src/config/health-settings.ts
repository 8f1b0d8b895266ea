import { dayMs } from '../errors/duration.ts'
import type { Setting } from './setting.ts'

/** The settings of the health probes of long-running commands. */
export const healthSettings = {
  healthPort: {
    type: 'whole',
    default: undefined,
    min: 0,
    max: 65_535,
    about:
      'Port that serves `/livez` and `/readyz` for `work`, `reap`, `serve` and `dev`; 0 picks any free port. Unset: disabled.',
  },
  healthHost: {
    type: 'text',
    default: '0.0.0.0',
    about:
      'Address that the health port listens on. Kubernetes probes come from outside the pod, so the default is not limited to localhost.',
  },
  healthFile: {
    type: 'text',
    default: undefined,
    about: 'File that the process rewrites every few seconds while it is alive, for probes without network access.',
  },
  livenessMs: {
    type: 'whole',
    default: 120_000,
    min: 500,
    max: dayMs,
    about:
      'How long a loop may make no progress before its process counts as stalled. Set it higher than the longest time that a handler blocks the event loop.',
  },
} as const satisfies Record<string, Setting>
