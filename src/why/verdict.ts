// Why a job does not move. The facts are what the database says at one moment. Verdicts are computed from them alone, so an old snapshot
// is judged like the current state. The rules are data: the first one that applies is the verdict, the last one of each state always
// applies, and the table in the docs is generated from them.
import type { Config } from '../config/config.ts'
import type { State } from '../job/machine.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import type { ContinuationCase, JobCase, Next } from './case.ts'
import { continuationRules } from './continuation.ts'
import { disagreementsOf } from './disagreements.ts'
import { endedRules } from './ended.ts'
import type { Facts } from './facts.ts'
import { itemRules } from './item.ts'
import { queuedRules } from './queued.ts'
import type { RepairName } from './repair.ts'
import type { Rule } from './rule.ts'
import { runningRules } from './running.ts'
import { scheduleRules } from './scheduled.ts'
import { waitingRules } from './waiting.ts'

/** The diagnosis of a job. */
export interface Verdict {
  code: string
  sentence: string
  /** Its orphan class, if it is an orphan. */
  orphan: OrphanName | null
  next: Next | null
  repair: RepairName | null
  disagreements: string[]
}

/** The rules about jobs, in the order in which they are tried. */
export const jobRules: readonly Rule<JobCase>[] = [
  ...itemRules,
  ...scheduleRules,
  ...queuedRules,
  ...runningRules,
  ...waitingRules,
  ...endedRules,
]

/** What the docs and the tests need to know about a rule. */
export type AnyRule = Pick<Rule<never>, 'code' | 'states' | 'meaning' | 'orphans' | 'repair'>

/** Every rule. */
export const rules: readonly AnyRule[] = [...jobRules, ...continuationRules]

/** Judges facts. The settings determine when things happen; they should be those of the processes that work and reap. */
export function verdictOf(facts: Facts, config: Config): Verdict {
  const { job, continues } = facts
  if (job)
    return judge(
      jobRules.filter(({ states }) => states.some((state) => state === job.state)),
      { facts, job, config },
    )
  if (continues) return judge(continuationRules, { facts, barrier: continues, config })
  throw new Error('No source has a record of this job.')
}

function judge<Case extends JobCase | ContinuationCase>(candidates: readonly Rule<Case>[], given: Case): Verdict {
  // the last rule of each state always applies
  const rule = candidates.find(({ when }) => when(given)) as Rule<Case>
  const mayRepair = rule.mayRepair?.(given) ?? true
  return {
    code: rule.code,
    sentence: `${rule.sentence(given)}.`.replace(/\.+$/, '.'),
    orphan: rule.orphan ? rule.orphan(given) : (rule.orphans[0] ?? null),
    next: rule.next(given),
    repair: mayRepair ? rule.repair : null,
    disagreements: disagreementsOf(given),
  }
}

/** Every verdict as a Markdown table, for the docs. */
export function verdictTable(): string {
  const code = (word: string) => `\`${word}\``
  const list = (words: readonly string[]) => words.map(code).join(', ') || '–'
  const rows = rules.map(
    ({ code: name, states, meaning, orphans, repair }) =>
      `| ${code(name)} | ${states.length > 0 ? formatStates(states) : 'not submitted'} | ${meaning} | ${list(orphans)} | ${repair ? code(repair) : '–'} |`,
  )
  return ['| code | state | meaning | class of orphan | repair |', '|---|---|---|---|---|', ...rows].join('\n')
}

function formatStates(states: readonly State[]): string {
  return states.join(', ')
}
