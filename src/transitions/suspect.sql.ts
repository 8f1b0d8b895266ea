import { suspectCrashes } from '../job/define.ts'
import { raw } from '../postgres/sql.ts'

/** Whether the row `job` of `ready` is a suspect. Must have the exact form of the index's predicate, with the numbers as literals, or Postgres can't use the index. */
export const isSuspect = raw(
  `(job.crashes >= ${suspectCrashes} or (job.crashes = 1 and job.crash_budget <= ${suspectCrashes}))`,
)

/** Whether it is not a suspect. Most jobs have not crashed at all. */
export const isNoSuspect = raw(
  `(job.crashes = 0 or (job.crashes < ${suspectCrashes} and job.crash_budget > ${suspectCrashes}))`,
)
