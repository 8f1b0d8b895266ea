import { legal, sql, statement } from '../store/sql.ts'

/**
 * Says how far attempts are, many at a time. An attempt that is no longer the job's own writes nothing and is missing in the answer; one
 * that has been further already is in it although nothing is written, for progress never goes down.
 */
export const reportProgress = statement<{ id: string; attempt: number }>()(
  'progress.report',
  (p: {
    ids: string[]
    attempts: number[]
    done: number[]
    totals: (number | null)[]
    notes: (string | null)[]
  }) => sql`
  with mine as materialized (
    select job.id, job.attempt, job.stage, mine.done, mine.total, mine.note
    from unnest(${p.ids}::uuid[], ${p.attempts}::int[], ${p.done}::float8[], ${p.totals}::float8[], ${p.notes}::text[])
      as mine (id, attempt, done, total, note)
    join holdfast.live_job as job on job.id = mine.id and job.attempt = mine.attempt and ${legal('finish')}
  ),
  written as (
    insert into holdfast.job_progress (job_id, attempt, stage, done, total, note)
    select id, attempt, stage, done, total, note
    from mine
    order by id
    on conflict (job_id) do update
    set attempt = excluded.attempt, stage = excluded.stage, done = excluded.done, total = excluded.total, note = excluded.note, at = now()
    where (job_progress.attempt, job_progress.done) <= (excluded.attempt, excluded.done)
  )
  select id, attempt
  from mine`,
)

/** Writes log lines into the timelines of jobs, many at a time. An attempt that is no longer the job's own writes nothing. */
export const writeLogs = statement<{ id: string; attempt: number }>()(
  'event.log',
  (p: { ids: string[]; attempts: number[]; data: string[] }) => sql`
  insert into holdfast.event (type, job_id, kind, tenant, session_id, attempt, stage, data)
  select 'job.log', job.id, job.kind, job.tenant, job.session_id, job.attempt, job.stage, mine.data::json
  from unnest(${p.ids}::uuid[], ${p.attempts}::int[], ${p.data}::text[]) with ordinality as mine (id, attempt, data, place)
  join holdfast.live_job as job on job.id = mine.id and job.attempt = mine.attempt and ${legal('finish')}
  order by mine.place
  returning job_id as id, attempt`,
)
