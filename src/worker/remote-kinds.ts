import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import { type AnyJob, type AnyStage, type Backoff, defineJob } from '../job/define.ts'
import { deadlinesOf } from './lanes.ts'
import type { HeldRemoteRow, RemoteClaimedRow } from './remote.sql.ts'
import type { Rules } from './rules.ts'

/** A stage that a remote worker runs. What it does not say is taken from the settings of the server. */
export interface RemoteStage {
  name: string
  /** If an optional stage fails for good, the job ends `partial`. */
  optional?: boolean | undefined
  timeoutMs?: number | undefined
  retries?: number | undefined
  backoff?: { baseMs?: number | undefined; factor?: number | undefined; maxMs?: number | undefined } | undefined
}

/** A kind that a remote worker serves. */
export interface RemoteKind {
  name: string
  /** The queue that its jobs wait in. Default: `default`. */
  queue?: string | undefined
  /** 1 (first) to 4 (last). Default: 2. */
  priority?: number | undefined
  crashBudget?: number | undefined
  /** Default: one stage called `run`. */
  stages?: readonly RemoteStage[] | undefined
}

interface StoredStage {
  name: string
  optional: boolean
  timeoutMs: number
  retries: number
  backoff: Required<Backoff>
}

/** A kind with all its rules. */
export interface StoredKind {
  name: string
  queue: string
  priority: number
  crashBudget: number
  stages: StoredStage[]
}

/** What the row of a session keeps, so that every server decides alike whatever its own settings are. */
export interface StoredRemote {
  leaseMs: number
  kinds: StoredKind[]
  /** For each kind and stage, how long after a claim the attempt is taken for hung, as JSON. */
  deadlinesMs: string
}

const mostStages = 100
/** Of all its kinds together: a server reads them with every request of the session. */
const mostStagesInAll = 2_000

/** The kinds as they are stored: checked, and each rule that was not given taken from the settings. */
export function storeKinds(config: Config, kinds: readonly RemoteKind[]): Pick<StoredRemote, 'kinds' | 'deadlinesMs'> {
  const most = config.kindsPerSession
  if (!Array.isArray(kinds) || kinds.length === 0 || kinds.length > most)
    refuse(`kinds must be a list of 1 to ${most} kinds (setting kindsPerSession), such as [{ "name": "extract" }]`)
  const stored = kinds.map((kind) => storeKind(config, kind))
  if (stored.reduce((sum, { stages }) => sum + stages.length, 0) > mostStagesInAll)
    refuse(`all kinds of a session together may have ${mostStagesInAll} stages`)
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
      stages: stages.map(({ name, timeoutMs, retries, backoff }) => ({
        name,
        timeoutMs,
        retries,
        backoff,
        run: elsewhere,
      })),
    } as never) as AnyJob
    return {
      name: job.kind,
      queue: job.queue,
      priority: job.priority,
      crashBudget: job.crashBudget ?? config.crashBudget,
      stages: job.stages.map((stage, index) => ({
        name: stage.name,
        optional: stages[index]?.optional === true,
        timeoutMs: stage.timeoutMs ?? config.jobTimeoutMs,
        retries: stage.retries ?? config.retries,
        backoff: { ...{ baseMs: config.backoffBaseMs, factor: 2, maxMs: config.backoffMaxMs }, ...given(stage) },
      })),
    }
  } catch (error) {
    if (error instanceof HoldfastError) throw new HoldfastError('option_invalid', error.message)
    throw error
  }
}

function given({ backoff = {} }: AnyStage): Partial<Required<Backoff>> {
  return Object.fromEntries(
    (['baseMs', 'factor', 'maxMs'] as const).flatMap((name) =>
      backoff[name] === undefined ? [] : [[name, backoff[name]]],
    ),
  )
}

function elsewhere(): never {
  throw new Error('This stage runs in a remote worker.')
}

/** A kind as the claim knows it. */
export function jobOf({ name, stages, ...kind }: StoredKind): AnyJob {
  return { ...kind, kind: name, input: undefined, stages: stages.map((stage) => ({ ...stage, run: elsewhere })) }
}

/** The stage that an attempt is of; undefined if this session serves no such kind. */
export function stageOf(remote: StoredRemote, row: HeldRemoteRow | RemoteClaimedRow): StoredStage | undefined {
  return remote.kinds.find(({ name }) => name === row.kind)?.stages[row.stage]
}

/** The names of the stages before this one. */
export function stagesBefore(remote: StoredRemote, row: RemoteClaimedRow): string[] {
  const kind = remote.kinds.find(({ name }) => name === row.kind)
  return kind ? kind.stages.slice(0, row.stage).map(({ name }) => name) : []
}

/** What decides how an attempt of a remote worker goes on. */
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

/** Kinds as those see them who submit. */
export function facesOf(kinds: StoredKind[]) {
  return {
    names: kinds.map(({ name }) => name),
    queues: kinds.map(({ queue }) => queue),
    priorities: kinds.map(({ priority }) => priority),
    crashBudgets: kinds.map(({ crashBudget }) => crashBudget),
    stages: kinds.map(({ stages }) => JSON.stringify(stages.map(({ name, optional }) => ({ name, optional })))),
  }
}
