import { requeueWaiting, waitingJobs } from '../../../fan-out/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { batch, healingDuty } from './healing.ts'

/** Queues waiting jobs again that no barrier will join. */
export const requeueUnjoinable = (): Duty =>
  healingDuty({
    name: 'requeueWaiting',
    everyMs: 0,
    heal: (runner, only) => runner.run(requeueWaiting, { limit: batch, only }),
    find: waitingJobs,
    tell: ({ id }) => ({
      barrier: id,
      job: id,
      orphan: 'waiting-without-barrier',
      message: 'the job was waiting, but there was no barrier to join it; queued again',
    }),
  })
