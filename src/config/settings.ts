import { healthSettings } from './health-settings.ts'
import { httpSettings } from './http-settings.ts'
import { kindSettings } from './kind-settings.ts'
import type { Setting } from './setting.ts'
import { webhookSettings } from './webhook-settings.ts'

const day = 86_400_000

/** Every setting of Holdfast, declared once. */
export const settings = {
  url: {
    type: 'text',
    default: undefined,
    about: 'Postgres to use, as a URL. Without it, an embedded Postgres in `dataDir`.',
  },
  dataDir: { type: 'text', default: '.holdfast', about: 'Folder of the embedded Postgres.' },
  poolSize: {
    type: 'whole',
    default: 5,
    min: 2,
    max: 200,
    about: 'Connections of one process, beside one for its heartbeat and one for its wake-ups.',
  },
  pooled: {
    type: 'flag',
    default: false,
    about:
      'Whether the URL leads through a transaction pooler such as PgBouncer: then no prepared names, no LISTEN, no session lock.',
  },
  statementTimeoutMs: {
    type: 'whole',
    default: 15_000,
    min: 100,
    max: day,
    about: 'How long a statement may take before it is cancelled in the database.',
  },
  ownersModule: { type: 'text', default: undefined, about: 'Module that exports the `owners` of barriers, by name.' },
  processes: { type: 'whole', default: 2, min: 1, max: 64, about: 'Worker processes that `dev` and `work` start.' },
  concurrency: {
    type: 'whole',
    default: 10,
    min: 1,
    max: 10_000,
    about: 'Handlers that one worker process runs at once.',
  },
  queues: {
    type: 'list',
    default: [] as readonly string[],
    about: 'Queues to work on, with commas between. Empty: every queue of the kinds it knows.',
  },
  batchSize: {
    type: 'whole',
    default: 1_000,
    min: 1,
    max: 5_000,
    about: 'Most jobs in one claim, one settle, one grouped submit.',
  },
  pollMs: {
    type: 'whole',
    default: 1_000,
    min: 10,
    max: day,
    about: 'How often an idle worker looks for jobs even if nothing wakes it.',
  },
  holdMs: {
    type: 'whole',
    default: 2_000,
    min: 100,
    max: 60_000,
    about: 'How long a claimed job may wait for a free handler before it is given back.',
  },
  drainMs: {
    type: 'whole',
    default: 25_000,
    min: 0,
    max: day,
    about: 'How long a stopping worker lets its handlers finish before it gives their jobs back.',
  },
  jobTimeoutMs: {
    type: 'whole',
    default: 900_000,
    min: 1,
    max: 2_000_000_000,
    about: 'Time-out of a stage that names none.',
  },
  timeoutGraceMs: {
    type: 'whole',
    default: 5_000,
    min: 0,
    max: day,
    about: 'How long a handler may take to end after its signal fired, before it is given up and its place is free.',
  },
  maxUnresponsive: {
    type: 'whole',
    default: 10,
    min: 1,
    max: 100_000,
    about:
      'At how many handlers that ignored their signal and still run a worker stops claiming, drains and fails, so that its process is replaced.',
  },
  retries: {
    type: 'whole',
    default: 3,
    min: 0,
    max: 1_000,
    about: 'Failures that are retried in a stage that names no number.',
  },
  backoffBaseMs: {
    type: 'whole',
    default: 1_000,
    min: 0,
    max: day,
    about: 'Wait before the first retry; it doubles with each failure.',
  },
  backoffMaxMs: { type: 'whole', default: 3_600_000, min: 0, max: 30 * day, about: 'Longest wait before a retry.' },
  crashBudget: {
    type: 'whole',
    default: 3,
    min: 1,
    max: 1_000,
    about: 'Workers that a job may lose before it is quarantined, if its kind names no number.',
  },
  maxInputBytes: { type: 'whole', default: 1_048_576, min: 1, max: 268_435_456, about: 'Largest input, as JSON.' },
  maxMetaBytes: { type: 'whole', default: 16_384, min: 2, max: 1_048_576, about: 'Largest `meta` of a job, as JSON.' },
  maxOutputBytes: {
    type: 'whole',
    default: 4_194_304,
    min: 1,
    max: 268_435_456,
    about: 'Largest output of one stage, as JSON.',
  },
  heartbeatMs: { type: 'whole', default: 1_000, min: 50, max: 60_000, about: 'How often a session renews its lease.' },
  lostAfterMs: {
    type: 'whole',
    default: 3_000,
    min: 200,
    max: 600_000,
    about: 'Age of the last heartbeat at which a session whose lock is gone counts as dead.',
  },
  leaseMs: {
    type: 'whole',
    default: 15_000,
    min: 500,
    max: 3_600_000,
    about: 'Age of the last heartbeat at which any session counts as dead.',
  },
  abortMarginMs: {
    type: 'whole',
    default: 500,
    min: 50,
    max: 60_000,
    about: 'How long before its jobs could be given away a worker aborts them itself.',
  },
  sweepMs: { type: 'whole', default: 250, min: 20, max: 60_000, about: 'How often the leader sweeps for orphans.' },
  leaderLeaseMs: {
    type: 'whole',
    default: 2_000,
    min: 200,
    max: 600_000,
    about: 'How long a leader leads without renewing.',
  },
  leaderRenewMs: {
    type: 'whole',
    default: 500,
    min: 20,
    max: 60_000,
    about: 'How often a leader renews, and a candidate asks.',
  },
  ownerTimeoutMs: {
    type: 'whole',
    default: 5_000,
    min: 10,
    max: 60_000,
    about: 'How long the owner of an execution may take to answer; at most half of `statementTimeoutMs` counts.',
  },
  readerLeaseMs: {
    type: 'whole',
    default: 5_000,
    min: 200,
    max: 600_000,
    about: 'How long a reader of events keeps its share of a group without a sign of life.',
  },
  readerBeatMs: {
    type: 'whole',
    default: 1_000,
    min: 20,
    max: 60_000,
    about: 'How often a reader of events gives a sign of life, and looks for its share.',
  },
  eventRetentionMs: {
    type: 'whole',
    default: 30 * day,
    min: 3_600_000,
    max: 3_650 * day,
    about: 'How long events are kept, if every group has read them.',
  },
  eventCapMs: {
    type: 'whole',
    default: 90 * day,
    min: 3_600_000,
    max: 3_650 * day,
    about: 'How long events are kept for groups that have not read them; then they are dropped all the same, loudly.',
  },
  ...kindSettings,
  ...webhookSettings,
  ...httpSettings,
  ...healthSettings,
  logLevel: { type: 'text', default: 'info', about: 'One of fatal, error, warn, info, debug, trace, silent.' },
} as const satisfies Record<string, Setting>

/** The name of a setting. */
export type SettingName = keyof typeof settings

type ValueOf<S extends Setting> = S['type'] extends 'whole'
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

/** What a setting is, for docs and CLI. */
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
