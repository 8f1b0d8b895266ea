import { openBarriers, recountBarriers } from '../../../fan-out/heal.sql.ts'
import { lowestId } from '../../../job/id.ts'
import type { Duty } from '../../duty.ts'
import { Walk } from '../../walk.ts'
import { batch, healingDuty, namesOf } from './healing.ts'

const quietMs = 5_000

/** Recounts the counters of quiet fan-outs that disagree with their items. It walks over all of them, some in each run. */
export const recountFanOuts = (): Duty => {
  const walk = new Walk(lowestId, batch)
  return healingDuty({
    name: 'recount',
    everyMs: 10_000,
    heal: (runner, only) =>
      only
        ? runner.run(recountBarriers, { quietMs, limit: only.length, only })
        : walk.next((page) => runner.run(recountBarriers, { quietMs, ...page })),
    find: openBarriers,
    isOnce: true,
    tell: (row) =>
      row.drift === 0
        ? undefined
        : {
            ...namesOf(row),
            orphan: row.was_negative ? 'negative-count' : 'counter-drift',
            message: `the counters were off by ${row.drift}; recounted from the ledger`,
          },
  })
}
