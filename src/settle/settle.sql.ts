import type { Fence } from '../job/id.ts'
import type { MoveName } from '../job/machine.ts'
import { ending, wakeIfJoined } from '../store/ending.sql.ts'
import { plainList, sparseList, textList } from '../store/lists.ts'
import { snapshotting } from '../store/snapshot.sql.ts'
import { eventOf, legalOfMine, raw, type Sql, sql, statement, target } from '../store/sql.ts'
import { wakeIdle } from '../store/wake.sql.ts'

interface Ended {
  fences: Fence[]
  sessionId: number
  /** One per fence: the output as JSON text, or null. */
  outputs: (string | null)[]
  stageNames: string[]
  /** Whether items of the stage failed within its threshold: then the job can end partial at best. */
  flaws?: boolean[]
}

interface Erred {
  fences: Fence[]
  sessionId: number
  /** One per fence: the error as JSON text. */
  errors: string[]
}

/** What a settle of many answers. */
export interface Moved {
  count: number
  /** If not all were settled, the places of those that were, from 1 on. */
  places: string | null
  /** Barriers in which one item too many failed: what is left of them must be cancelled. */
  stopped?: string[] | null
}

/** The same for all settles: how many of these fences moved, and if not all did, which. */
export function moved(fences: Fence[], from: string): Sql {
  return sql`count(*)::int as count, case when count(*) < ${fences.length}::int then ${raw(`array_agg(${from}.place)`)}::text end as places`
}

const ids = (fences: Fence[]) => plainList(fences.map((fence) => fence.id))
const attempts = (fences: Fence[]) => plainList(fences.map((fence) => fence.attempt))
const flawsOf = ({ flaws }: Ended) => (flaws?.some(Boolean) ? plainList(flaws) : '{}')
// an output is named by its stage; where there is none, nothing is
const namesOf = ({ outputs, stageNames }: Ended) =>
  sparseList(stageNames.map((name, index) => (outputs[index] === null ? null : name)))

/** The rows that these fences still own, moved from the live table to the finished one, and all that follows from it. */
function endJobs(fences: Fence[], move: MoveName, state: Sql, mine: Sql, also: Sql): Sql {
  const failures = raw(move === 'fail' ? 'failures + 1' : 'failures')
  return sql`
  with mine as materialized (${mine}),
  gone as (
    delete from holdfast.live_job as job
    using mine
    where ${legalOfMine(move)}
    returning job.*, mine.place, mine.output, mine.name, mine.error, mine.has_flaws
  ),
  ${ending({ move, state, error: raw('error::json'), data: raw('error::json'), failures })}${also}
  select ${moved(fences, 'gone')}, (select array_agg(bumped.id) from bumped where bumped.is_stopped) as stopped, ${wakeIfJoined} as woken
  from gone`
}

const storeOutputs = sql`,
  stored as (
    insert into holdfast.stage_output (job_id, stage, name, attempt, output)
    select id, stage, name, attempt, output::json
    from gone
    where output is not null
    on conflict (job_id, stage) do update set name = excluded.name, attempt = excluded.attempt, at = now(), output = excluded.output
  )`

/** Ends attempts well, many at a time. A missing row means that its lease was lost and another worker owns the job. */
export const finishJobs = statement<Moved>()('job.finish', (p: Ended) =>
  endJobs(
    p.fences,
    'finish',
    sql`case when is_flawed or has_flaws then ${target('finish', 'partial')} else ${target('finish', 'succeeded')} end`,
    sql`
    select place, id, attempt, output, name, coalesce(has_flaws, false) as has_flaws, null::text as error
    from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[], ${sparseList(p.outputs)}::text[], ${namesOf(p)}::text[], ${flawsOf(p)}::boolean[])
      with ordinality as mine (id, attempt, output, name, has_flaws, place)`,
    storeOutputs,
  ),
)

const erred = (p: Erred) => sql`
    select place, id, attempt, error, null::text as output, null::text as name, false as has_flaws
    from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[], ${textList(p.errors)}::text[]) with ordinality as mine (id, attempt, error, place)`

const keepWhy = sql`,
  ${snapshotting('fail', 'gone')}`

/** Ends attempts in failure, many at a time: retries are spent, or the error is permanent. */
export const failJobs = statement<Moved>()('job.fail', (p: Erred) =>
  endJobs(p.fences, 'fail', target('fail', 'failed'), erred(p), keepWhy),
)

/** Ends attempts of an optional stage in failure: what the earlier stages returned stays a usable result. */
export const failOptional = statement<Moved>()('job.fail_optional', (p: Erred) =>
  endJobs(p.fences, 'fail', target('fail', 'partial'), erred(p), keepWhy),
)

/** Commits the outputs of stages and queues their jobs for the next stage. Failures and crashes are counted per stage. */
export const advanceJobs = statement<Moved>()(
  'job.advance',
  (p: Ended) => sql`
  with mine as materialized (
    select *
    from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[], ${sparseList(p.outputs)}::text[], ${namesOf(p)}::text[], ${flawsOf(p)}::boolean[])
      with ordinality as mine (id, attempt, output, name, has_flaws, place)
  ),
  gone as (
    update holdfast.live_job as job
    set state = ${target('advance')}, stage = job.stage + 1, session_id = null, deadline_at = null, failures = 0, crashes = 0, run_at = now(),
      is_flawed = job.is_flawed or coalesce(mine.has_flaws, false)
    from mine
    where ${legalOfMine('advance')}
    returning job.id, job.kind, job.tenant, job.attempt, job.stage - 1 as stage, mine.place, mine.output, mine.name
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage)
    select ${eventOf('advance')}, ${target('advance')}, id, kind, tenant, ${p.sessionId}::bigint, attempt, stage
    from gone
  )${storeOutputs}
  select ${moved(p.fences, 'gone')}, case when count(*) > 0 then ${wakeIdle} end as woken
  from gone`,
)

/** Queues failed attempts again, each not before its durable backoff has passed. */
export const retryJobs = statement<Moved>()(
  'job.retry',
  (p: Erred & { delaysMs: number[] }) => sql`
  with mine as materialized (
    select *
    from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[], ${textList(p.errors)}::text[], ${plainList(p.delaysMs)}::float8[])
      with ordinality as mine (id, attempt, error, delay_ms, place)
  ),
  back as (
    update holdfast.live_job as job
    set state = ${target('retry')}, session_id = null, deadline_at = null, failures = job.failures + 1, run_at = now() + mine.delay_ms * interval '1 ms'
    from mine
    where ${legalOfMine('retry')}
    returning job.id, job.kind, job.tenant, job.attempt, job.stage, mine.place, mine.error, job.run_at
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf('retry')}, ${target('retry')}, id, kind, tenant, ${p.sessionId}::bigint, attempt, stage,
      json_build_object('error', error::json, 'runAt', run_at)
    from back
  )
  select ${moved(p.fences, 'back')}
  from back`,
)

/** Gives attempts back unharmed: the worker stops, or holds more than it can start soon. Costs no retry. */
export const releaseJobs = statement<Moved>()(
  'job.release',
  (p: { fences: Fence[]; sessionId: number }) => sql`
  with mine as materialized (
    select *
    from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[]) with ordinality as mine (id, attempt, place)
  ),
  back as (
    update holdfast.live_job as job
    set state = ${target('release')}, session_id = null, deadline_at = null
    from mine
    where ${legalOfMine('release')}
    returning job.id, job.kind, job.tenant, job.attempt, job.stage, mine.place
  ),
  announced as (
    insert into holdfast.event (type, state, job_id, kind, tenant, session_id, attempt, stage)
    select ${eventOf('release')}, ${target('release')}, id, kind, tenant, ${p.sessionId}::bigint, attempt, stage
    from back
  )
  select ${moved(p.fences, 'back')}, case when count(*) > 0 then ${wakeIdle} end as woken
  from back`,
)

/** Which of these attempts have an event of that type already: an earlier try was carried out, only its answer was lost. */
export const alreadySettled = statement<{ id: string; attempt: number }>()(
  'event.already',
  (p: { fences: Fence[]; type: string }) => sql`
  select mine.id, mine.attempt
  from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[]) as mine (id, attempt)
  where exists (
    select
    from holdfast.event
    where event.job_id = mine.id and event.attempt = mine.attempt and event.type = ${p.type}
  )`,
)

/** Keeps refused writes, for whoever asks later why. */
export const recordRefusals = statement<never>()(
  'refusal.record',
  (p: { fences: Fence[]; sessionId: number; write: string }) => sql`
  insert into holdfast.refusal (job_id, attempt, session_id, write)
  select id, attempt, ${p.sessionId}::bigint, ${p.write}::text
  from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[]) as mine (id, attempt)`,
)
