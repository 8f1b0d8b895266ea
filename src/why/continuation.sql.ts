import { raw, type Sql, sql } from '../postgres/sql.ts'
import { mostCounted } from './facts.ts'

/** The open or fired barrier whose continuation is that job, with as many of its parts as are counted for an answer. */
const open = (id: Sql) => sql`
      select json_build_object('id', barrier.id, 'tenant', barrier.tenant, 'kind', barrier.kind, 'total', barrier.total, 'arrived', barrier.arrived,
        'ledger', (
          select count(*)
          from (
            select
            from holdfast.owned_part as part
            where part.barrier_id = barrier.id and part.arrived_at is not null
            limit ${raw(String(mostCounted + 1))}
          ) as few
        ),
        'openedAt', barrier.opened_at, 'armedAt', barrier.armed_at, 'isRearmed', barrier.arming > barrier.opened_arming,
        'expiresAt', barrier.expires_at, 'dueAt', barrier.due_at, 'asks', barrier.asks, 'firedAt', barrier.fired_at, 'expiredAt', barrier.expired_at,
        'owner', barrier.owner, 'execution', barrier.execution)
      from holdfast.owned_barrier as barrier
      where barrier.job_id = ${id}
      order by barrier.armed_at desc
      limit 1`

/** The same of a barrier that expired and was removed, so that job was never submitted. */
const removed = (id: Sql) => sql`
      select json_build_object('id', barrier_id, 'tenant', tenant, 'kind', kind, 'total', total, 'arrived', arrived, 'ledger', arrived,
        'openedAt', opened_at, 'armedAt', armed_at, 'isRearmed', is_rearmed, 'expiresAt', expires_at, 'dueAt', null, 'asks', asks, 'firedAt', null,
        'expiredAt', ended_at, 'owner', owner, 'execution', execution, 'endedBy', word)
      from holdfast.owned_end
      where owned_end.job_id = ${id}`

/** The barrier whose continuation is the job with that id. */
export function continues(id: Sql): Sql {
  return sql`coalesce((${open(id)}
    ), case when job.id is null then (${removed(id)}
    ) end)`
}

/** Whether the job with that id is, or was to be, the continuation of a barrier. */
export function isContinuation(id: Sql): Sql {
  return sql`(exists (select from holdfast.owned_barrier where owned_barrier.job_id = ${id})
    or exists (select from holdfast.owned_end where owned_end.job_id = ${id}))`
}
