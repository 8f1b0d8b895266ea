import { sql } from '../postgres/sql.ts'
import { check, lacks, past } from './check.sql.ts'

/** Checks of signals and of unique keys. */
export const flowChecks = {
  'signalled-job-is-due': check(
    'signalled_job_is_due',
    (p) => sql`
    select ready.job_id::text, format('was sent the signal %s at %s, but waits for it until %s', sent.name, sent.sent_at, ready.run_at)
    from (select * from holdfast.signal order by job_id desc limit ${p.latest}::bigint) as sent
    join holdfast.signal_wait as waits on waits.job_id = sent.job_id and waits.name = sent.name
    join holdfast.ready on ready.job_id = sent.job_id and ready.stage = waits.stage
    where ready.run_at > now() and ready.run_at < '9999-01-01 00:00:00+00' and sent.sent_at < ${past(p)}`,
  ),
  'wait-has-an-end': check(
    'wait_has_an_end',
    (p) => sql`
    select ready.job_id::text, format('waits for the signal %s until %s, but is due only at %s', waits.name, waits.until, ready.run_at)
    from (select * from holdfast.signal_wait order by job_id desc limit ${p.latest}::bigint) as waits
    join holdfast.ready on ready.job_id = waits.job_id and ready.stage = waits.stage
    where ready.run_at > waits.until + interval '1 s' and ready.run_at < '9999-01-01 00:00:00+00'
      and ${lacks(sql`holdfast.signal where signal.job_id = waits.job_id and signal.name = waits.name`)}`,
  ),
  'unique-key-has-job': check(
    'unique_key_has_job',
    (p) => sql`
    select held.job_id::text, format('the unique key %s of kind %s and tenant %s leads to no job', held.key, held.kind, held.tenant)
    from (select * from holdfast.unique_job order by job_id desc limit ${p.latest}::bigint) as held
    where coalesce(held.until, '-infinity') < ${past(p)} and held.taken_at < ${past(p)}
      and ${lacks(sql`holdfast.job where job.id = held.job_id`)}`,
  ),
} as const
