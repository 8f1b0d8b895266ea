import type { State } from '../job/machine.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import type { Next } from './case.ts'
import type { RepairName } from './repair.ts'

/** One verdict: what it is about, and what it says about a case that it applies to. */
export interface Rule<Case> {
  readonly code: string
  /** The states of the jobs that it is about; empty if the job is not submitted yet. */
  readonly states: readonly State[]
  /** For the docs. */
  readonly meaning: string
  /** The classes of orphans that look like this. */
  readonly orphans: readonly OrphanName[]
  readonly when: (given: Case) => boolean
  readonly sentence: (given: Case) => string
  readonly next: (given: Case) => Next | null
  readonly repair: RepairName | null
  /** The orphan class of a case, if any. Default: the first one. */
  readonly orphan?: (given: Case) => OrphanName | null
  /** Whether the repair applies to a case. Default: always. */
  readonly mayRepair?: (given: Case) => boolean
}
