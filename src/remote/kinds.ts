import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { backoffOf } from '../job/backoff.ts'
import { type AnyJob, type Backoff, defineJob } from '../job/define.ts'
import { type Keep, type KeptMs, storedKeep } from '../job/keep.ts'
import type { Wait } from '../job/wait.ts'
import { registeredStage } from '../worker/kinds.ts'
import { deadlinesOf } from '../worker/lanes.ts'
import type { Rules } from '../worker/rules.ts'
import type { HeldRemoteRow, RemoteClaimedRow } from './remote.sql.ts'

/** A stage that a remote worker runs. The settings of the server supply what it leaves out. */
export interface RemoteStage {
  name: string
  /** If an optional stage fails permanently, the job ends `partial`. */
  optional?: boolean | undefined
  /** How long one attempt may take. Default: the `jobTimeoutMs` setting. */
  timeoutMs?: number | undefined
  /** How many failures are retried. Default: the `retries` setting. */
  retries?: number | undefined
  /** What the stage waits for, if it waits for a signal instead of running. The server does that; no worker is given the stage. */
  wait?: Wait | undefined
  /** How long to wait before a retry. */
  backoff?: { baseMs?: number | undefined; factor?: number | undefined; maxMs?: number | undefined } | undefined
}

/** A kind that a remote worker handles. */
export interface RemoteKind {
  name: string
  /** The queue that its jobs wait in. Default: `default`. */
  queue?: string | undefined
  /** 1 (first) to 4 (last). Default: 2. */
  priority?: number | undefined
  /** How many workers a job may lose before it is quarantined. Default: the `crashBudget` setting. */
  crashBudget?: number | undefined
  /** How long its jobs are kept after they end. Default: the settings of the server. */
  keep?: Keep | undefined
  /** Default: one stage called `run`. */
  stages?: readonly RemoteStage[] | undefined
}

interface StoredStage {
  name: string
  optional: boolean
  timeoutMs: number
  retries: number
  backoff: Required<Backoff>
  wait?: Wait | undefined
}

/** A kind with all its rules. */
export interface StoredKind {
  name: string
  queue: string
  priority: number
  crashBudget: number
  keep?: KeptMs | undefined
  stages: StoredStage[]
}

/** What the row of a session stores, so that every server decides the same way whatever its own settings are. */
export interface StoredRemote {
  leaseMs: number
  kinds: StoredKind[]
  /** For each kind and stage, how long after its claim an attempt counts as hung; as JSON. */
  deadlinesMs: string
}

const mostStages = 100
/** Across all its kinds, because a server reads them with every request of the session. */
const mostStagesInAll = 2_000

/** Validates kinds, and fills in the settings for the rules that they leave out. */
export function storeKinds(config: Config, kinds: readonly RemoteKind[]): Pick<StoredRemote, 'kinds' | 'deadlinesMs'> {
  const most = config.kindsPerSession
  if (!Array.isArray(kinds) || kinds.length === 0 || kinds.length > most)
    refuse(`kinds must be a list of 1 to ${most} kinds (setting kindsPerSession), such as [{ "name": "extract" }]`)
  const stored = kinds.map((kind) => storeKind(config, kind))
  if (stored.reduce((sum, { stages }) => sum + stages.length, 0) > mostStagesInAll)
    refuse(`all kinds of a session together may have at most ${mostStagesInAll} stages`)
  const names = stored.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice) refuse(`two kinds are named ${JSON.stringify(twice)}`)
  return { kinds: stored, deadlinesMs: deadlinesOf(stored.map(jobOf), config) }
}

function storeKind(config: Config, kind: RemoteKind): StoredKind {
  if (typeof kind !== 'object' || kind === null) refuse('each kind must be an object with a name')
  const stages = kind.stages ?? [{ name: 'run' }]
  if (!Array.isArray(stages) || stages.length > mostStages || stages.some((stage) => typeof stage?.name !== 'string'))
    refuse(`stages must be a list of at most ${mostStages} objects, each with a name`)
  try {
    const job = defineJob(kind.name, {
      queue: kind.queue,
      priority: kind.priority,
      crashBudget: kind.crashBudget,
      keep: kind.keep,
      stages: stages.map(({ name, timeoutMs, retries, backoff, wait }) => ({
        name,
        timeoutMs,
        retries,
        backoff,
        ...(wait === undefined ? { run: elsewhere } : { wait }),
      })),
    } as never) as AnyJob
    return {
      name: job.kind,
      queue: job.queue,
      priority: job.priority,
      crashBudget: job.crashBudget ?? config.crashBudget,
      keep: job.keep,
      stages: job.stages.map((stage, index) => ({
        name: stage.name,
        optional: stages[index]?.optional === true,
        timeoutMs: stage.timeoutMs ?? config.jobTimeoutMs,
        retries: stage.retries ?? config.retries,
        backoff: backoffOf(config, stage.backoff),
        ...(stage.wait && { wait: stage.wait }),
      })),
    }
  } catch (error) {
    if (error instanceof HoldfastError) throw new HoldfastError('option_invalid', error.message)
    throw error
  }
}

function elsewhere(): never {
  throw new Error('This stage runs in a remote worker.')
}

/** A kind, as a claim expects it. */
export function jobOf({ name, stages, ...kind }: StoredKind): AnyJob {
  return { ...kind, kind: name, input: undefined, stages: stages.map((stage) => ({ ...stage, run: elsewhere })) }
}

/** The stage that an attempt runs; undefined if this session does not handle its kind. */
export function stageOf(remote: StoredRemote, row: HeldRemoteRow | RemoteClaimedRow): StoredStage | undefined {
  return remote.kinds.find(({ name }) => name === row.kind)?.stages[row.stage]
}

/** The names of the stages before the one that an attempt runs. */
export function stagesBefore(remote: StoredRemote, row: RemoteClaimedRow): string[] {
  const kind = remote.kinds.find(({ name }) => name === row.kind)
  return kind ? kind.stages.slice(0, row.stage).map(({ name }) => name) : []
}

/** The rules that decide what follows an attempt of a remote worker. */
export function rulesOf(remote: StoredRemote, row: HeldRemoteRow): Rules | undefined {
  const stage = stageOf(remote, row)
  if (!stage) return undefined
  const count = remote.kinds.find(({ name }) => name === row.kind)?.stages.length
  return {
    stageName: stage.name,
    isLast: row.stage + 1 === count,
    isOptional: stage.optional,
    failures: row.failures,
    retries: stage.retries,
    backoff: stage.backoff,
  }
}

function refuse(problem: string): never {
  throw new HoldfastError('option_invalid', `A session cannot be opened like this: ${problem}.`)
}

/** Kinds, as they are registered for submitters. */
export function registrationOf(kinds: StoredKind[]) {
  return {
    names: kinds.map(({ name }) => name),
    queues: kinds.map(({ queue }) => queue),
    priorities: kinds.map(({ priority }) => priority),
    crashBudgets: kinds.map(({ crashBudget }) => crashBudget),
    stages: kinds.map(({ stages }) => JSON.stringify(stages.map(registeredStage))),
    keeps: kinds.map(({ keep }) => storedKeep(keep)),
  }
}
