import { raw, sql } from '../postgres/sql.ts'
import { isNoSuspect } from '../transitions/suspect.sql.ts'
import { check, past } from './check.sql.ts'

const open = raw('sum(length(lease.done) - bit_count(lease.done))')

/** A change is dated when its transaction began; claims until its commit go by the earlier limit. */
const slack = raw(`interval '10 s'`)

/** The checks of limits. A lower limit takes no lease away, so only leases that were claimed after the last change count. */
export const limitChecks = {
  'limit-is-kept': check(
    'limit_is_kept',
    () => sql`
    select format('%s %s', limiter.scope, limiter.name), format('%s jobs hold a slot; the limit is %s', held.count, limiter.concurrency)
    from holdfast.limiter
    cross join lateral (
      select ${open} as count, min(lease.claimed_at) as since
      from holdfast.lease
      where lease.gate_key is not null and case when limiter.scope = 'kind' then lease.kind = limiter.name else lease.queue = limiter.name end
    ) as held
    where held.count > limiter.concurrency and held.since > limiter.changed_at + ${slack}
    union all
    select format('kind %s, key %s', held.kind, held.key), format('%s jobs hold a slot; the limit is %s', held.count, coalesce(one.concurrency, limiter.key_concurrency))
    from (
      select lease.kind, lease.queue, lease.gate_key, substr(lease.gate_key, strpos(lease.gate_key, ' ') + 1) as key, ${open} as count, min(lease.claimed_at) as since
      from holdfast.lease
      where lease.gate_key is not null
      group by lease.kind, lease.queue, lease.gate_key
    ) as held
    join holdfast.limiter on limiter.scope = 'kind' and limiter.name = held.kind
    left join holdfast.key_limit as one on one.kind = held.kind and one.key = held.key
    where held.count > coalesce(one.concurrency, limiter.key_concurrency) and held.since > greatest(limiter.changed_at, one.changed_at) + ${slack}`,
  ),
  'limited-job-has-gate': check(
    'limited_job_has_gate',
    (p) => sql`
    select job.job_id::text, 'waits at a gate that nobody will open'
    from holdfast.limiter
    cross join lateral (
      select job.job_id, job.queue, job.kind, job.gate_key
      from holdfast.ready as job
      where job.gate_key is not null and job.run_at < ${past(p)} and ${isNoSuspect}
        and case when limiter.scope = 'kind' then job.kind = limiter.name else job.queue = limiter.name end
      limit ${p.latest}::bigint
    ) as job
    left join holdfast.gate on gate.queue = job.queue and gate.kind = job.kind and gate.key = job.gate_key
    where coalesce(not gate.is_open and gate.next_at = 'infinity', true)
      and not exists (select from holdfast.gate_hint as hint where hint.queue = job.queue and hint.kind = job.kind and hint.key = job.gate_key)
      and not exists (select from holdfast.lease where lease.kind = job.kind and lease.queue = job.queue and lease.gate_key = job.gate_key)
      and coalesce(limiter.key_concurrency, 1) > 0
      and not exists (select from holdfast.key_limit as one where one.kind = job.kind and one.concurrency = 0 and one.key = substr(job.gate_key, strpos(job.gate_key, ' ') + 1))`,
  ),
} as const
