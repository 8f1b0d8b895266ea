import { suspectCrashes } from '../job/define.ts'
import { raw } from './sql.ts'

/** Whether the row `job` of `ready` is a suspect. The numbers stand in the text, in the very form of the index, or it could not be used. */
export const isSuspect = raw(
  `(job.crashes >= ${suspectCrashes} or (job.crashes = 1 and job.crash_budget <= ${suspectCrashes}))`,
)

/** Whether it is none: most jobs have not crashed at all. */
export const isNoSuspect = raw(
  `(job.crashes = 0 or (job.crashes < ${suspectCrashes} and job.crash_budget > ${suspectCrashes}))`,
)
