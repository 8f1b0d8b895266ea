import type { Fence, HeldFence } from '../job/id.ts'
import type { MoveName } from '../job/machine.ts'
import { plainList, sparseList, textList } from '../postgres/array-text.ts'
import { eventOf, raw, type Sql, sql, statement, target } from '../postgres/sql.ts'
import { ending, wakeIfJoined } from '../transitions/end.sql.ts'
import { oneMore, requeueing, takingOut } from '../transitions/leases.sql.ts'
import { snapshotting } from '../transitions/snapshot.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

interface Ended {
  fences: HeldFence[]
  /** One per fence: the output as JSON text, or null. */
  outputs: (string | null)[]
  stageNames: string[]
  /** Whether items of the stage failed, within its threshold: then the job is partial at best. */
  flaws?: boolean[]
}

interface Erred {
  fences: HeldFence[]
  /** One per fence: the error as JSON text. */
  errors: string[]
}

/** The result of a settle. */
export interface Moved {
  count: number
  /** If not all were settled, the positions of those that were, starting at 1. */
  places: string | null
  /** Barriers in which too many items failed: their remaining items must be cancelled. */
  stopped?: string[] | null
}

/** The columns that all settles return: how many of these fences moved, and which, if not all did. */
export function moved(fences: HeldFence[], from: string): Sql {
  return sql`count(*)::int as count, case when count(*) < ${fences.length}::int then ${raw(`array_agg(${from}.place)`)}::text end as places`
}

const flawsOf = ({ flaws }: Ended) => (flaws?.some(Boolean) ? plainList(flaws) : '{}')
// an output is stored under the name of its stage; without an output no name is needed
const namesOf = ({ outputs, stageNames }: Ended) =>
  sparseList(stageNames.map((name, index) => (outputs[index] === null ? null : name)))

/** Takes out the attempts that these fences still own, with their outputs. */
const endedOf = (p: Ended) =>
  takingOut(p.fences, {
    names: 'output, name, has_flaws',
    lists: sql`${sparseList(p.outputs)}::text[], ${namesOf(p)}::text[], ${flawsOf(p)}::boolean[]`,
  })

const erredOf = (p: Erred) => takingOut(p.fences, { names: 'error', lists: sql`${textList(p.errors)}::text[]` })

/** Ends the jobs of the attempts that these fences still own. */
function endJobs(fences: HeldFence[], move: MoveName, state: Sql, gone: Sql, how: { error: Sql; also: Sql }): Sql {
  const failures = raw(move === 'fail' ? oneMore('failures') : 'failures')
  return sql`
  with ${gone},
  ${ending({ move, state, error: how.error, data: how.error, failures })}${how.also}
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

/** Ends jobs in success. A fence that moved nothing has lost its lease: another worker owns the job. */
export const finishJobs = statement<Moved>()('job.finish', (p: Ended) =>
  endJobs(
    p.fences,
    'finish',
    sql`case when is_flawed or has_flaws then ${target('finish', 'partial')} else ${target('finish', 'succeeded')} end`,
    endedOf(p),
    { error: raw('null::json'), also: storeOutputs },
  ),
)

const keepWhy = sql`,
  ${snapshotting('fail', 'gone')}`

/** Ends jobs in failure: their retries are spent, or the error is permanent. */
export const failJobs = statement<Moved>()('job.fail', (p: Erred) =>
  endJobs(p.fences, 'fail', target('fail', 'failed'), erredOf(p), { error: raw('error::json'), also: keepWhy }),
)

/** Ends jobs whose optional stage failed: the outputs of the earlier stages remain a usable result. */
export const failOptional = statement<Moved>()('job.fail_optional', (p: Erred) =>
  endJobs(p.fences, 'fail', target('fail', 'partial'), erredOf(p), { error: raw('error::json'), also: keepWhy }),
)

/** Writes the events of jobs that were queued again. */
export const announcing = (move: MoveName, data = raw('null::json'), from = 'gone') => sql`
  announced as (
    insert into holdfast.event_log (type, state, job_id, kind, tenant, session_id, attempt, stage, data)
    select ${eventOf(move)}, ${target(move)}, id, kind, own_tenant, session_id, attempt, stage, ${data}
    from ${raw(from)}
  )`

/** Stores the outputs of stages, and queues their jobs for the next stage. Failures and crashes count per stage. */
export const advanceJobs = statement<Moved>()(
  'job.advance',
  (p: Ended) => sql`
  with ${endedOf(p)},
  back as (${requeueing({
    source: 'gone',
    runAt: raw('now()'),
    stage: 'back.stage + 1',
    failures: '0',
    crashes: '0',
    isFlawed: 'back.is_flawed or coalesce(back.has_flaws, false)',
  })}
  ),${announcing('advance')}${storeOutputs}
  select ${moved(p.fences, 'gone')}, case when count(*) > 0 then ${wakeIdle} end as woken
  from gone`,
)

/** Queues the jobs of failed attempts again, each after its backoff. */
export const retryJobs = statement<Moved>()(
  'job.retry',
  (p: Erred & { delaysMs: number[] }) => sql`
  with ${takingOut(p.fences, {
    names: 'error, delay_ms',
    lists: sql`${textList(p.errors)}::text[], ${plainList(p.delaysMs)}::float8[]`,
  })},
  back as (${requeueing({
    source: 'gone',
    runAt: raw(`now() + back.delay_ms * interval '1 ms'`),
    failures: oneMore('back.failures'),
  })}
  ),${announcing('retry', raw(`json_build_object('error', error::json, 'runAt', now() + delay_ms * interval '1 ms')`))}
  select ${moved(p.fences, 'gone')}
  from gone`,
)

/** Queues the jobs of attempts again at no cost: their worker stops, or can't start them soon. */
export const releaseJobs = statement<Moved>()(
  'job.release',
  (p: { fences: HeldFence[] }) => sql`
  with ${takingOut(p.fences)},
  back as (${requeueing({ source: 'gone', runAt: raw('back.due_at') })}
  ),${announcing('release')}
  select ${moved(p.fences, 'gone')}, case when count(*) > 0 then ${wakeIdle} end as woken
  from gone`,
)

/**
 * Queues the jobs of attempts again for later, at no cost, because another system asked to slow down. A hint holds their gates back as well, if
 * they came through one.
 */
export const holdBackJobs = statement<Moved>()(
  'job.hold_back',
  (p: { fences: HeldFence[]; holdsMs: number[] }) => sql`
  with ${takingOut(p.fences, { names: 'hold_ms', lists: sql`${plainList(p.holdsMs)}::float8[]` })},
  back as (${requeueing({ source: 'gone', runAt: raw(`now() + back.hold_ms * interval '1 ms'`) })}
  ),
  holding as (
    insert into holdfast.gate_hint (queue, kind, key, held_until)
    select held.queue, held.kind, held.gate_key, now() + max(gone.hold_ms) * interval '1 ms'
    from gone
    join held on held.held_id = gone.lease_id
    where held.gate_key is not null
    group by held.queue, held.kind, held.gate_key
    on conflict (queue, kind, key, txid) do update set held_until = greatest(gate_hint.held_until, excluded.held_until)
  ),${announcing('release', raw(`json_build_object('heldUntil', now() + hold_ms * interval '1 ms')`))}
  select ${moved(p.fences, 'gone')}
  from gone`,
)

const ids = (fences: readonly Fence[]) => plainList(fences.map((fence) => fence.id))
const attempts = (fences: readonly Fence[]) => plainList(fences.map((fence) => fence.attempt))

/** Which of these attempts already have an event of that type, because an earlier try was carried out after all. */
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

/** Records refused writes, for diagnosis. */
export const recordRefusals = statement<never>()(
  'refusal.record',
  (p: { fences: readonly Fence[]; sessionId: number; write: string }) => sql`
  insert into holdfast.refusal (job_id, attempt, session_id, write)
  select id, attempt, ${p.sessionId}::bigint, ${p.write}::text
  from unnest(${ids(p.fences)}::uuid[], ${attempts(p.fences)}::int[]) as mine (id, attempt)`,
)
