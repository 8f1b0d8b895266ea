import { liveStates } from '../job/machine.ts'
import { raw, type Sql, sql } from '../postgres/sql.ts'
import { countersOf, countItems } from '../transitions/barrier-counters.sql.ts'
import { mostCounted } from './facts.ts'

const most = raw(String(mostCounted))
const oneMore = raw(String(mostCounted + 1))
const countLive = raw(
  liveStates.map((state) => `count(*) filter (where item.state = '${state}') as ${state}`).join(', '),
)

/** The items of the row `barrier`, counted, if it has not joined: up to a limit, so that a large fan-out can be asked about as well. */
export const ledger: Sql = sql`case when barrier.joined_at is null then (
          select row_to_json(counted)
          from (
            select ${raw(liveStates.map((state) => `live.${state}`).join(', '))}, ${countersOf('ended')},
              live.is_whole and ended.is_whole as "isWhole"
            from (
              select ${countLive}, count(*) <= ${most} as is_whole
              from holdfast.live_items(barrier.id, ${oneMore}) as item
            ) as live
            cross join (
              select ${countItems('item.state')}, count(*) <= ${most} as is_whole
              from (
                select outcome.state
                from holdfast.outcome
                where outcome.barrier_id = barrier.id
                order by outcome.barrier_id, outcome.state
                limit ${oneMore}
              ) as item
            ) as ended
          ) as counted
        ) end`

/** Some items of the row `barrier` that have not ended, those with the nearest deadlines first. */
export const stragglers: Sql = raw(`case when barrier.joined_at is null then (
          select json_agg(json_build_object('id', late.job_id, 'key', item.item_key, 'state', late.state, 'attempt', late.attempt, 'crashes', late.crashes,
            'deadlineAt', late.deadline_at) order by late.deadline_at nulls last)
          from (
            select *
            from holdfast.live_items(barrier.id, 1000) as few
            order by few.deadline_at nulls last
            limit 5
          ) as late
          left join holdfast.job as item on item.id = late.job_id
        ) end`)
