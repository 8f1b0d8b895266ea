import type { Config } from '../config/config.ts'
import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { State } from '../job/machine.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import type { Store } from '../store/store.ts'
import type { Next } from '../why/case.ts'
import { readFacts, type SnapshotRow, type VitalsRow } from '../why/facts.sql.ts'
import { type Facts, forTenant } from '../why/facts.ts'
import { mend } from '../why/mend.ts'
import { type RepairName, repairs } from '../why/repair.ts'
import { withOwnNumbers } from '../why/session-numbers.ts'
import { type Verdict, verdictOf } from '../why/verdict.ts'
import { flagOf, idOf, textOf } from './given.ts'

/** Why a job is where it is. */
export interface Why {
  id: JobId
  /** When this was so, by the clock of the database. */
  at: Date
  /** Null if the job is yet to be submitted, when a barrier fires. */
  state: State | null
  verdict: { code: string; sentence: string }
  /** The class of orphan that it is, if it is one. */
  orphan: OrphanName | null
  /** What will happen by itself; `byAt` is null if that is for somebody to decide. */
  next: Next | null
  /** Where the sources contradict each other. */
  disagreements: string[]
  /** What every source of truth says. */
  facts: Facts
  /** What would help, if anything: `hf.mend` does it. */
  repair: { name: RepairName; sentence: string } | null
  /** What was to be said when attempts of it failed or lost their workers, oldest first. */
  snapshots: WhySnapshot[]
}

/** What was to be said about a job right before one of its attempts ended badly. */
export interface WhySnapshot {
  at: Date
  attempt: number
  /** The event that announced the end of the attempt. */
  event: string
  /** Null if the facts could not be read at the time. */
  verdict: { code: string; sentence: string } | null
}

/** What a repair did. */
export interface Mended {
  repair: RepairName | null
  sentence: string
  isApplied: boolean
  /** How it stands after it. */
  why: Why
}

interface Asking {
  store: Store
  config: Config
}

const shownSnapshots = 10

/** Says why a job is where it is. Throws job_not_found. */
export async function why(parts: Asking, id: string, { tenant }: { tenant?: string } = {}): Promise<Why> {
  return whyOf(parts.config, await factsOf(parts, idOf(id), textOf('tenant', tenant)), textOf('tenant', tenant))
}

/** Makes the repair of a job's verdict, or only says what it would do. Throws job_not_found. */
export async function mendJob(
  parts: Asking,
  id: string,
  { tenant, dryRun = false, by }: { tenant?: string; dryRun?: boolean; by?: string } = {},
): Promise<Mended> {
  const isDry = flagOf('dryRun', dryRun)
  const known = await factsOf(parts, idOf(id), textOf('tenant', tenant))
  const before = whyOf(parts.config, known, textOf('tenant', tenant))
  const { repair } = before
  const untouched = { repair: repair?.name ?? null, isApplied: false, why: before }
  if (!repair) return { ...untouched, sentence: nothingToDo(before) }
  if (isDry) return { ...untouched, sentence: `Nothing was changed. It would: ${repair.sentence}` }
  const done = await mend(parts.store, repair.name, {
    id: before.id,
    tenant: textOf('tenant', tenant),
    by: textOf('by', by),
    facts: known.facts,
  })
  const after = await why(parts, id, tenant === undefined ? {} : { tenant })
  if (done === 'nothing')
    return { ...untouched, sentence: 'Nothing was changed: what was to be mended is not so any more.', why: after }
  return { repair: repair.name, sentence: `Done: ${repair.sentence}`, isApplied: true, why: after }
}

function nothingToDo({ next }: Why): string {
  return next
    ? `Nothing was changed: there is nothing to mend. ${next.what}.`
    : 'Nothing was changed: there is nothing to mend.'
}

interface Read {
  id: JobId
  facts: Facts
  snapshots: SnapshotRow[]
}

async function factsOf({ store }: Asking, id: JobId, tenant: string | null): Promise<Read> {
  const [row] = await store.run(readFacts, { id, shown: shownSnapshots })
  const whose = row?.facts?.job ? row.facts.job.tenant : row?.facts?.continues?.tenant
  // another tenant's job is as good as none: its id must not be told apart from one that does not exist
  if (!row?.facts || (tenant !== null && whose !== tenant))
    throw new HoldfastError('job_not_found', `There is no job ${id}.`)
  return { id, facts: withVitals(row.facts, row), snapshots: row.snapshots }
}

/** The facts, with what the workers say of themselves. */
function withVitals(facts: Facts, vitals: VitalsRow): Facts {
  const { workers, blocked_ms, unresponsive, paused_by, pause_reason, exit, stages, own_queue, ahead } = vitals
  return {
    ...facts,
    kind: facts.kind && {
      ...facts.kind,
      ...(stages !== null && { names: stages }),
      ...(own_queue !== null && { ownQueue: own_queue }),
    },
    queue: {
      ...facts.queue,
      ...(paused_by !== null && { pausedBy: paused_by }),
      ...(pause_reason !== null && { reason: pause_reason }),
    },
    ahead,
    session: facts.session && {
      ...facts.session,
      ...(exit !== null && { exit }),
      ...(blocked_ms !== null && { blockedMs: blocked_ms }),
    },
    workers: facts.workers && { ...facts.workers, ...workers },
    unresponsive,
  }
}

function whyOf(config: Config, { id, facts: all, snapshots }: Read, tenant: string | null): Why {
  const told = snapshots.flatMap((row) => ('trouble' in row.facts ? [] : [row.facts]))
  const numbered = withOwnNumbers([all, ...told])
  const seen = (facts: Facts) => (tenant === null ? facts : forTenant(numbered(facts)))
  const facts = seen(all)
  const { code, sentence, orphan, next, repair, disagreements } = verdictOf(facts, config)
  return {
    id,
    at: new Date(facts.at),
    state: facts.job?.state ?? null,
    verdict: { code, sentence },
    orphan,
    next,
    disagreements,
    facts,
    repair: repairOf(repair, tenant),
    snapshots: snapshots.map((row) => ({
      at: new Date(row.at),
      attempt: row.attempt,
      event: row.event,
      verdict: 'trouble' in row.facts ? null : wordsOf(verdictOf(seen(row.facts), config)),
    })),
  }
}

/** What concerns all tenants is for whoever runs the system, not for one of them. */
function repairOf(name: RepairName | null, tenant: string | null): Why['repair'] {
  if (name === null || (tenant !== null && repairs[name].isForOperators)) return null
  return { name, sentence: repairs[name].does }
}

function wordsOf({ code, sentence }: Verdict): { code: string; sentence: string } {
  return { code, sentence }
}
