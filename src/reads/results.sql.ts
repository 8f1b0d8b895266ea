import { sql, statement } from '../postgres/sql.ts'

/** How a job ended. Without a state, it exists but has not ended. Without outputs, they were too large to return with those of the others. */
export interface EndingRow {
  id: string
  state: string | null
  stage: number | null
  error: { code: string; message: string } | null
  outputs: { name: string; stage: number; output: unknown }[] | null
}

/** How those of these jobs that are final ended, and which of the `unseen` ones exist at all. */
export const endingsOf = statement<EndingRow>()(
  'job.endings',
  (p: { ids: string[]; unseen: string[]; mostBytes: number }) => sql`
  select job.id, job.state, job.stage, job.error, case when job.bytes_before <= ${p.mostBytes}::bigint then coalesce((
    select json_agg(json_build_object('name', output.name, 'stage', output.stage, 'output', output.output) order by output.stage)
    from holdfast.stage_output as output
    where output.job_id = job.id
  ), '[]') end as outputs
  from (
    select job.job_id as id, job.state, job.stage, job.error, sum(stored.bytes) over (order by job.job_id) - stored.bytes as bytes_before
    from holdfast.outcome as job
    cross join lateral (
      select coalesce(sum(output.bytes), 0) as bytes
      from holdfast.stage_output as output
      where output.job_id = job.job_id
    ) as stored
    where job.job_id = any(${p.ids}::uuid[])
  ) as job
  union all
  select live.id, null, null, null, null
  from holdfast.job as live
  where live.id = any(${p.unseen}::uuid[]) and not exists (select from holdfast.outcome where outcome.job_id = live.id)`,
)
