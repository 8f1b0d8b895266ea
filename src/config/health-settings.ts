import type { Setting } from './setting.ts'

/** The settings of the probes that commands which run on answer. */
export const healthSettings = {
  healthPort: {
    type: 'whole',
    default: undefined,
    min: 0,
    max: 65_535,
    about:
      'Port that answers `/livez` and `/readyz` for `work`, `reap`, `serve` and `dev`; 0 takes any that is free. Unset: none.',
  },
  healthHost: {
    type: 'text',
    default: '0.0.0.0',
    about:
      'Address that the health port listens at. Probes of Kubernetes come from outside of the pod, so not only this machine.',
  },
  healthFile: {
    type: 'text',
    default: undefined,
    about: 'File that is rewritten every few seconds while the process is alive, for probes without a network.',
  },
  livenessMs: {
    type: 'whole',
    default: 120_000,
    min: 500,
    max: 86_400_000,
    about:
      'How long a loop may not turn before its process counts as stalled. Keep it above the longest that a handler blocks its event loop.',
  },
} as const satisfies Record<string, Setting>
