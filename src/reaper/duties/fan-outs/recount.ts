import { openBarriers, recountBarriers } from '../../../fan-out/heal.sql.ts'
import type { Duty } from '../../duty.ts'
import { batch, healingDuty, namesOf } from './healing.ts'

const quietMs = 5_000

/** Recounts the counters of quiet fan-outs that disagree with their items. */
export const recountFanOuts = (): Duty =>
  healingDuty({
    name: 'recount',
    everyMs: 10_000,
    heal: (runner, only) => runner.run(recountBarriers, { quietMs, limit: batch, only }),
    find: openBarriers,
    isOnce: true,
    tell: (row) => ({
      ...namesOf(row),
      orphan: row.was_negative ? 'negative-count' : 'counter-drift',
      message: `the counters were off by ${row.drift}; recounted from the ledger`,
    }),
  })
