import { dayMs } from '../errors/duration.ts'
import { healthSettings } from './health-settings.ts'
import { httpSettings } from './http-settings.ts'
import { kindSettings } from './kind-settings.ts'
import { leaseSettings } from './lease-settings.ts'
import { retentionSettings } from './retention-settings.ts'
import { scheduleSettings } from './schedule-settings.ts'
import type { Setting } from './setting.ts'
import { webhookSettings } from './webhook-settings.ts'

/** Every Holdfast setting, declared once. */
export const settings = {
  url: {
    type: 'text',
    default: undefined,
    about: 'URL of the Postgres database. Unset: an embedded Postgres in `dataDir`.',
  },
  dataDir: { type: 'text', default: '.holdfast', about: 'Data folder of the embedded Postgres.' },
  poolSize: {
    type: 'whole',
    default: 5,
    min: 2,
    max: 200,
    about: 'Connections per process, in addition to one for the heartbeat and one for wake-ups.',
  },
  pooled: {
    type: 'flag',
    default: false,
    about:
      'Whether the URL points to a transaction pooler such as PgBouncer. Disables named prepared statements, LISTEN and session locks.',
  },
  statementTimeoutMs: {
    type: 'whole',
    default: 15_000,
    min: 100,
    max: dayMs,
    about: 'How long a statement may run before the database cancels it.',
  },
  ownersModule: {
    type: 'text',
    default: undefined,
    about: 'Module that exports `owners`: the barrier owners, by name.',
  },
  processes: { type: 'whole', default: 2, min: 1, max: 64, about: 'Worker processes that `dev` and `work` start.' },
  concurrency: {
    type: 'whole',
    default: 10,
    min: 1,
    max: 10_000,
    about: 'Handlers that one worker process runs concurrently.',
  },
  queues: {
    type: 'list',
    default: [] as readonly string[],
    about: 'Comma-separated queues to work on. Empty: all queues of the registered kinds.',
  },
  batchSize: {
    type: 'whole',
    default: 1_000,
    min: 1,
    max: 5_000,
    about: 'Maximum number of jobs in one claim, settle or grouped submit.',
  },
  claimMaxBytes: {
    type: 'whole',
    default: 16_777_216,
    min: 1,
    max: 268_435_456,
    about:
      'Maximum size of the inputs and earlier outputs in one claim, and of those that wait in a worker for a free handler. The first job of a claim may be larger.',
  },
  pollMs: {
    type: 'whole',
    default: 1_000,
    min: 10,
    max: dayMs,
    about: 'How often an idle worker polls for jobs without a wake-up.',
  },
  holdMs: {
    type: 'whole',
    default: 2_000,
    min: 100,
    max: 60_000,
    about: 'How long a claimed job may wait for a free handler before the worker releases it.',
  },
  drainMs: {
    type: 'whole',
    default: 25_000,
    min: 0,
    max: dayMs,
    about: 'How long a stopping worker waits for its handlers to finish before it releases their jobs.',
  },
  jobTimeoutMs: {
    type: 'whole',
    default: 900_000,
    min: 1,
    max: 2_000_000_000,
    about: 'Default stage timeout.',
  },
  timeoutGraceMs: {
    type: 'whole',
    default: 5_000,
    min: 0,
    max: dayMs,
    about:
      'How long a handler may take to return after its abort signal fires. After that, the worker abandons it and frees its slot.',
  },
  maxUnresponsive: {
    type: 'whole',
    default: 10,
    min: 1,
    max: 100_000,
    about:
      'How many handlers may ignore their abort signal and keep running. At this number, the worker stops claiming, drains and fails, so that its process is replaced.',
  },
  retries: {
    type: 'whole',
    default: 3,
    min: 0,
    max: 1_000,
    about: 'Default number of retries per stage.',
  },
  backoffBaseMs: {
    type: 'whole',
    default: 1_000,
    min: 0,
    max: dayMs,
    about: 'Delay before the first retry; it doubles with each failure.',
  },
  backoffMaxMs: { type: 'whole', default: 3_600_000, min: 0, max: 30 * dayMs, about: 'Maximum delay before a retry.' },
  crashBudget: {
    type: 'whole',
    default: 3,
    min: 1,
    max: 1_000,
    about: 'Default number of workers that a job may lose before it is quarantined.',
  },
  maxInputBytes: { type: 'whole', default: 1_048_576, min: 1, max: 268_435_456, about: 'Maximum input size, as JSON.' },
  maxMetaBytes: {
    type: 'whole',
    default: 16_384,
    min: 2,
    max: 1_048_576,
    about: 'Maximum `meta` size of a job, as JSON.',
  },
  maxOutputBytes: {
    type: 'whole',
    default: 4_194_304,
    min: 1,
    max: 268_435_456,
    about: 'Maximum output size of one stage, as JSON.',
  },
  ...leaseSettings,
  sweepMs: { type: 'whole', default: 250, min: 20, max: 60_000, about: 'How often the leader sweeps for orphans.' },
  leaderLeaseMs: {
    type: 'whole',
    default: 2_000,
    min: 200,
    max: 600_000,
    about: 'How long a leader stays leader without renewing its lease.',
  },
  leaderRenewMs: {
    type: 'whole',
    default: 500,
    min: 20,
    max: 60_000,
    about: 'How often the leader renews its lease and candidates try to acquire it.',
  },
  ownerTimeoutMs: {
    type: 'whole',
    default: 5_000,
    min: 10,
    max: 60_000,
    about: 'How long the owner of an execution may take to respond; capped at half of `statementTimeoutMs`.',
  },
  readerLeaseMs: {
    type: 'whole',
    default: 5_000,
    min: 200,
    max: 600_000,
    about: 'How long an event reader keeps its share of a group without a heartbeat.',
  },
  readerBeatMs: {
    type: 'whole',
    default: 1_000,
    min: 20,
    max: 60_000,
    about: 'How often an event reader sends a heartbeat and checks its share.',
  },
  eventRetentionMs: {
    type: 'whole',
    default: 30 * dayMs,
    min: 3_600_000,
    max: 3_650 * dayMs,
    about: 'How long events are kept once every group has read them.',
  },
  eventCapMs: {
    type: 'whole',
    default: 90 * dayMs,
    min: 3_600_000,
    max: 3_650 * dayMs,
    about:
      'How long events are kept for groups that have not read them. After that, they are dropped, and an error is logged.',
  },
  ...retentionSettings,
  ...kindSettings,
  ...scheduleSettings,
  ...webhookSettings,
  ...httpSettings,
  ...healthSettings,
  logLevel: { type: 'text', default: 'info', about: 'One of fatal, error, warn, info, debug, trace, silent.' },
} as const satisfies Record<string, Setting>

/** The name of a setting. */
export type SettingName = keyof typeof settings

type ValueOf<S extends Setting> = S['type'] extends 'whole' | 'duration'
  ? S['default'] extends number
    ? number
    : number | undefined
  : S['type'] extends 'flag'
    ? boolean
    : S['type'] extends 'list'
      ? readonly string[]
      : S['default'] extends string
        ? string
        : string | undefined

/** All settings with their values. */
export type Config = { readonly [N in SettingName]: ValueOf<(typeof settings)[N]> }

/** All setting names, in the order of the docs. */
export const settingNames = Object.keys(settings) as SettingName[]

/** The definition of a setting, for docs and CLI. */
export function settingOf(name: SettingName): Setting {
  return settings[name]
}

/** The environment variable of a setting: `leaseMs` is `HOLDFAST_LEASE_MS`. */
export function envNameOf(name: SettingName): string {
  return `HOLDFAST_${name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`
}

/** The CLI flag of a setting: `leaseMs` is `--lease-ms`. */
export function flagOf(name: SettingName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}
