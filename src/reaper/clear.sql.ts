import { eventOf, raw, sql, statement } from '../store/sql.ts'

/** A crash that was counted against a job, although its worker came back. */
export interface UndueRow {
  id: string
  attempt: number
  session_id: number
  lost_ms: number
}

/** So often a job is cleared at the most: what makes its processes freeze again and again is not innocent. */
const mostClearings = 10

const clearing = raw(`'job.cleared'`)
/** Losses that a silence made: a handler that hangs is to blame, whatever its worker does. */
const silences = raw(`('lease ran out', 'lock gone')`)

/** Whether a job still counts the crash that an event told of: it was neither taken back, nor counted anew since. `told` names the event. */
const isUndue = (told: string) => sql`job.crashes > 0 and job.stage = ${raw(told)}.stage
      and not exists (
        select
        from holdfast.event as later
        where later.job_id = job.id and later.seq > ${raw(told)}.seq
          and (later.type = ${eventOf('redo')} or (later.type = ${clearing} and later.attempt = ${raw(told)}.attempt))
      )
      and (
        select count(*)
        from holdfast.event as earlier
        where earlier.job_id = job.id and earlier.type = ${clearing}
      ) < ${raw(String(mostClearings))}`

/** Live jobs that count a crash for the loss of one of these sessions. */
export const findUndue = statement<UndueRow>()(
  'crash.undue',
  (p: { sessions: number[]; limit: number }) => sql`
  select job.id, told.attempt, told.session_id, (extract(epoch from now() - told.at) * 1000)::float8 as lost_ms
  from unnest(${p.sessions}::bigint[]) as returned (id)
  join holdfast.event as told on told.session_id = returned.id and told.type = ${eventOf('revive')}
    and told.data ->> 'rung' in ${silences} and told.data ->> 'cameBack' is null
  join holdfast.live_job as job on job.id = told.job_id
  where ${isUndue('told')}
  limit ${p.limit}`,
)

/** Takes crashes back. What has ended meanwhile, or was taken back by another leader, is left alone. */
export const clearCrashes = statement<{ id: string }>()(
  'crash.clear',
  (p: { crashes: readonly UndueRow[] }) => sql`
  with mine as materialized (
    select mine.id, mine.attempt, mine.session_id, told.seq, told.stage
    from unnest(
      ${p.crashes.map(({ id }) => id)}::uuid[], ${p.crashes.map(({ attempt }) => attempt)}::int[],
      ${p.crashes.map(({ session_id }) => session_id)}::bigint[]
    ) as mine (id, attempt, session_id)
    join holdfast.event as told on told.job_id = mine.id and told.attempt = mine.attempt and told.type = ${eventOf('revive')}
  ),
  cleared as (
    update holdfast.live_job as job
    set crashes = job.crashes - 1
    from mine
    where job.id = mine.id and ${isUndue('mine')}
    returning job.id, job.kind, job.tenant, job.crashes, job.stage, mine.attempt, mine.session_id
  ),
  announced as (
    insert into holdfast.event (type, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${clearing}, id, kind, tenant, session_id, attempt, stage, json_build_object('crashes', crashes)
    from cleared
  )
  select id
  from cleared`,
)
