import { raw, type Sql, sql, statement, target } from '../postgres/sql.ts'
import { ending, wakeIfJoined } from '../transitions/end.sql.ts'
import { ofKind } from '../transitions/kind.sql.ts'
import { snapshotting } from '../transitions/snapshot.sql.ts'
import { exitOf, isSpent, type Orphans, taking } from './revive.sql.ts'

const spentError: Sql = sql`json_build_object('code', 'quarantined', 'message',
      format('The job lost %s workers, which is its crash budget (last: %s%s). Fix what kills them, then redo it.', crashes + 1, rung,
        ', ' || ${exitOf('gone')}))`

/** Whether a job is at an optional stage, as its kind was last registered. The stage of an item belongs to its parent, so it does not count. */
const isOptional: Sql = sql`coalesce(not gone.is_part and (${ofKind('stages', 'gone')} -> gone.stage::int ->> 'optional')::boolean, false)`

/**
 * Ends orphans whose crash budget is spent, so that a job that kills its workers stops doing so. At an optional stage it ends as if that
 * stage had failed permanently: the outputs of the earlier stages remain a usable result.
 */
export const quarantineJobs = statement<{ id: string }>()(
  'job.quarantine',
  (p: Orphans) => sql`
  with ${taking(p, isSpent)},
  ${ending({
    move: 'quarantine',
    state: sql`case when ${isOptional} then ${target('quarantine', 'partial')} else ${target('quarantine', 'failed')} end`,
    crashes: raw('crashes + 1'),
    error: spentError,
    data: sql`json_strip_nulls(json_build_object('rung', rung, 'lostMs', round(lost_ms::numeric), 'crashes', crashes + 1, 'exit', ${exitOf('gone')}, 'error', ${spentError}))`,
  })},
  ${snapshotting('quarantine', 'gone')}
  select id, ${wakeIfJoined} as woken
  from gone`,
)
