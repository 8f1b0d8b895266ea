import { expireBarriers, openBarriers } from '../../../fan-out/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { batch, healingDuty, namesOf } from './healing.ts'

/** Stops fan-outs past their expiry. If workers died, it extends the expiry instead, so that their items can be revived. */
export const expireFanOuts = (): Duty =>
  healingDuty({
    name: 'expireBarriers',
    everyMs: 0,
    heal: (runner, only) => runner.run(expireBarriers, { limit: batch, only }),
    find: openBarriers,
    tell: (row) => ({
      ...namesOf(row),
      orphan: 'barrier-expired',
      message: row.is_stopped
        ? 'expired with unfinished items; cancelled the rest'
        : 'expired with unfinished items whose workers had died; extended the expiry',
    }),
  })
