import { type HealedRow, joinDrained, openBarriers } from '../../../fan-out/heal.sql.ts'
import type { Duty, Healed } from '../../duty.ts'
import { batch, healingDuty, namesOf } from './healing.ts'

/** Joins fan-outs whose items have all ended, but whose continuation never fired. */
export const joinDrainedFanOuts = (): Duty =>
  healingDuty({
    name: 'joinDrained',
    everyMs: 0,
    heal: (runner, only) => runner.run(joinDrained, { limit: batch, only }),
    find: openBarriers,
    tell: healedOf,
  })

/** Says what was wrong with a drained barrier: three different problems have three different messages. */
function healedOf(row: HealedRow): Healed {
  const late = row.was_expired ? ', past its expiry' : ''
  if (row.was_negative)
    return {
      ...namesOf(row),
      orphan: 'negative-count',
      message: `a counter was negative${late}; recounted from the ledger and joined`,
    }
  if (row.lost > 0)
    return {
      ...namesOf(row),
      orphan: 'items-lost',
      message: `${row.lost} items are missing from the ledger${late}; counted as failed and joined`,
    }
  return {
    ...namesOf(row),
    orphan: 'drained-not-joined',
    message: `all work was done${late}, but the continuation had never fired; joined`,
  }
}
