import type { HeldFence } from '../job/id.ts'
import { plainList } from '../postgres/array-text.ts'
import { type Sql, sql, statement } from '../postgres/sql.ts'

/** Those of these attempts that are still held, with their index in the list. */
const standing = (fences: readonly HeldFence[]): Sql => sql`
    select mine.id, mine.attempt, held.stage, held.kind, held.session_id, coalesce(held.tenant, (select job.tenant from holdfast.job where job.id = mine.id)) as tenant,
      mine.place
    from unnest(
      ${plainList(fences.map(({ id }) => id))}::uuid[], ${plainList(fences.map(({ attempt }) => attempt))}::int[],
      ${plainList(fences.map(({ leaseId }) => leaseId))}::bigint[], ${plainList(fences.map(({ slot }) => slot))}::int[]
    ) with ordinality as mine (id, attempt, lease_id, slot, place)
    cross join lateral (
      select lease.stage, lease.kind, lease.session_id, lease.tenant
      from holdfast.lease
      where lease.id = mine.lease_id and get_bit(lease.done, mine.slot) = 0
      limit 1
    ) as held`

/**
 * Stores the progress of many attempts. A lost attempt writes nothing and is missing from the answer. An attempt that
 * has already reported more is in the answer, although nothing is written: progress never goes down.
 */
export const reportProgress = statement<{ id: string; attempt: number }>()(
  'progress.report',
  (p: { fences: readonly HeldFence[]; done: number[]; totals: (number | null)[]; notes: (string | null)[] }) => sql`
  with standing as materialized (${standing(p.fences)}
  ),
  mine as materialized (
    select standing.id, standing.attempt, standing.stage, told.done, told.total, told.note
    from unnest(${p.done}::float8[], ${p.totals}::float8[], ${p.notes}::text[]) with ordinality as told (done, total, note, place)
    join standing on standing.place = told.place
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

/** Writes log lines into the timelines of many jobs. A lost attempt writes nothing and is missing from the answer. */
export const writeLogs = statement<{ id: string; attempt: number }>()(
  'event.log',
  (p: { fences: readonly HeldFence[]; data: string[] }) => sql`
  with standing as materialized (${standing(p.fences)}
  )
  insert into holdfast.event_log (type, job_id, kind, tenant, session_id, attempt, stage, data)
  select 'job.log', standing.id, standing.kind, standing.tenant, standing.session_id, standing.attempt, standing.stage, told.data::json
  from unnest(${p.data}::text[]) with ordinality as told (data, place)
  join standing on standing.place = told.place
  order by told.place
  returning job_id as id, attempt`,
)
