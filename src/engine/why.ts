import type { Config } from '../config/config.ts'
import type { JobId } from '../job/id.ts'
import type { State } from '../job/machine.ts'
import { flagOf, idOf, textOf } from '../job/validate-argument.ts'
import type { Store } from '../postgres/store.ts'
import { noJob } from '../reads/gone.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import { applyRepair } from '../why/apply-repair.ts'
import type { Next } from '../why/case.ts'
import type { Facts } from '../why/facts.ts'
import { forTenant } from '../why/for-tenant.ts'
import { type Reading, readFacts } from '../why/read.ts'
import { type RepairName, repairs } from '../why/repair.ts'
import { withOwnNumbers } from '../why/session-numbers.ts'
import { type Verdict, verdictOf } from '../why/verdict.ts'

/** Why a job is where it is. */
export interface Why {
  id: JobId
  /** When the facts were read, by the database clock. */
  at: Date
  /** Null if the job will be submitted when a barrier fires. */
  state: State | null
  verdict: { code: string; sentence: string }
  /** Its orphan class, if it is an orphan. */
  orphan: OrphanName | null
  /** What happens next without intervention; `byAt` is null if there is no time bound. */
  next: Next | null
  /** Where the sources contradict each other. */
  disagreements: string[]
  /** What every source of truth says. */
  facts: Facts
  /** The repair that would help, if any; `hf.repair` applies it. */
  repair: { name: RepairName; sentence: string } | null
  /** The verdicts from when its attempts failed or lost their workers, oldest first. */
  snapshots: WhySnapshot[]
}

/** The verdict on a job right before one of its attempts failed or lost its worker. */
export interface WhySnapshot {
  at: Date
  attempt: number
  /** The event that announced the end of the attempt. */
  event: string
  /** Null if the facts could not be read at the time. */
  verdict: { code: string; sentence: string } | null
}

/** What a repair did. */
export interface Repaired {
  repair: RepairName | null
  sentence: string
  isApplied: boolean
  /** The diagnosis after the repair. */
  why: Why
}

interface Asking {
  store: Store
  config: Config
}

/** Explains the state of a job. Throws job_not_found. */
export async function why(parts: Asking, id: string, { tenant }: { tenant?: string } = {}): Promise<Why> {
  return whyOf(parts.config, await factsOf(parts, idOf(id), textOf('tenant', tenant)), textOf('tenant', tenant))
}

/** Applies the repair of a job's verdict, or only reports what it would do. Throws job_not_found. */
export async function repairJob(
  parts: Asking,
  id: string,
  { tenant, dryRun = false, by }: { tenant?: string; dryRun?: boolean; by?: string } = {},
): Promise<Repaired> {
  const isDry = flagOf('dryRun', dryRun)
  const known = await factsOf(parts, idOf(id), textOf('tenant', tenant))
  const before = whyOf(parts.config, known, textOf('tenant', tenant))
  const { repair } = before
  const untouched = { repair: repair?.name ?? null, isApplied: false, why: before }
  if (!repair) return { ...untouched, sentence: nothingToDo(before) }
  if (isDry) return { ...untouched, sentence: `Nothing was changed. This repair would be applied: ${repair.sentence}` }
  const done = await applyRepair(parts.store, repair.name, {
    id: before.id,
    tenant: textOf('tenant', tenant),
    by: textOf('by', by),
    facts: known.facts,
  })
  const after = await why(parts, id, tenant === undefined ? {} : { tenant })
  if (done === 'nothing')
    return { ...untouched, sentence: 'Nothing was changed: the problem no longer exists.', why: after }
  return { repair: repair.name, sentence: `Done: ${repair.sentence}`, isApplied: true, why: after }
}

function nothingToDo({ next }: Why): string {
  return next
    ? `Nothing was changed: there is nothing to repair. ${next.what}.`
    : 'Nothing was changed: there is nothing to repair.'
}

interface Read extends Reading {
  id: JobId
}

async function factsOf({ store }: Asking, id: JobId, tenant: string | null): Promise<Read> {
  const read = await readFacts(store, id)
  const whose = read?.facts.job ? read.facts.job.tenant : read?.facts.continues?.tenant
  // another tenant's job must not be distinguishable from one that does not exist
  if (!read || (tenant !== null && whose !== tenant)) throw await noJob(store, id, tenant)
  return { id, ...read }
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

/** A repair that concerns all tenants is for operators, not for a single tenant. */
function repairOf(name: RepairName | null, tenant: string | null): Why['repair'] {
  if (name === null || (tenant !== null && repairs[name].isForOperators)) return null
  return { name, sentence: repairs[name].does }
}

function wordsOf({ code, sentence }: Verdict): { code: string; sentence: string } {
  return { code, sentence }
}
