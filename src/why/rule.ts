import type { State } from '../job/machine.ts'
import type { OrphanName } from '../reaper/orphans.ts'
import type { Next } from './case.ts'
import type { RepairName } from './repair.ts'

/** One verdict: what it is about, and what it says of a case that fits. */
export interface Rule<Case> {
  readonly code: string
  /** The states of the jobs that it is about; none if the job is yet to be submitted. */
  readonly states: readonly State[]
  /** For the docs. */
  readonly meaning: string
  /** The classes of orphans that look like this. */
  readonly orphans: readonly OrphanName[]
  readonly when: (given: Case) => boolean
  readonly sentence: (given: Case) => string
  readonly next: (given: Case) => Next | null
  readonly repair: RepairName | null
  /** Which of its classes a case belongs to, if any; without it, the first. */
  readonly orphan?: (given: Case) => OrphanName | null
  /** Whether the repair fits this case; without it, it always does. */
  readonly mayRepair?: (given: Case) => boolean
}
