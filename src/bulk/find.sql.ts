import { sql, statement } from '../postgres/sql.ts'

/** The conditions of a bulk operation that a page of jobs does not check; null means any. */
export interface Narrowing {
  ids: string[]
  /** Only jobs that were submitted, and have ended if they have, up to this position in the log. */
  seq: string
  error: string | null
  errorText: string | null
  /** Text in the input: as given, and as JSON writes it inside a string. */
  text: string | null
  jsonText: string | null
  endedSince: string | null
  endedUntil: string | null
}

/** Which of these jobs match, in the order given. Reads each by its key, and its larger input only if text is searched for. */
export const narrowJobs = statement<{ id: string }>()(
  'bulk.narrow',
  (p: Narrowing) => sql`
  select wanted.id
  from unnest(${p.ids}::uuid[]) with ordinality as wanted (id, number)
  cross join lateral (select * from holdfast.job where job.id = wanted.id limit 1) as job
  left join lateral (select * from holdfast.outcome where outcome.job_id = wanted.id limit 1) as ended on true
  left join lateral (
    select payload.input
    from holdfast.job_payload as payload
    where payload.job_id = wanted.id and ${p.text}::text is not null
    limit 1
  ) as payload on true
  where job.seq <= ${p.seq}::bigint and coalesce(ended.seq, 0) <= ${p.seq}::bigint
    and (${p.error}::text is null or ended.error ->> 'code' = ${p.error})
    and (${p.errorText}::text is null or position(${p.errorText} in ended.error ->> 'message') > 0)
    and (${p.endedSince}::timestamptz is null or ended.finished_at >= ${p.endedSince}::timestamptz)
    and (${p.endedUntil}::timestamptz is null or ended.finished_at < ${p.endedUntil}::timestamptz)
    and (${p.text}::text is null or position(${p.text} in coalesce(job.input, payload.input)::text) > 0
      or position(${p.jsonText}::text in coalesce(job.input, payload.input)::text) > 0)
  order by wanted.number`,
)
