import { sql, statement } from '../postgres/sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'

/**
 * What became of a signal. `awaited`: its job waited for it, and is due now. `kept`: until its job waits for it. `repeated`: the first one
 * counts. `late`: the wait has timed out. `unknown`: no stage of its kind waits for it. `ended` and `none`: there is no live job.
 */
export type SignalAnswer = 'awaited' | 'kept' | 'repeated' | 'late' | 'unknown' | 'ended' | 'none'

/** Sends a signal to a job. */
export const sendSignal = statement<{ answer: SignalAnswer }>()(
  'signal.send',
  (p: { id: string; tenant: string | null; name: string; payload: string | null; by: string | null }) => sql`
  with sent as materialized (
    select holdfast.send_signal(${p.id}::uuid, ${p.tenant}::text, ${p.name}::text, ${p.payload}::text, ${p.by}::text) as answer
  )
  select answer, case when answer = 'awaited' then ${wakeIdle} end as woken
  from sent`,
)

/** The signals that the stages of a job's kind wait for, as the kind was last registered. */
export const signalsOfKind = statement<{ kind: string; signals: string[] }>()(
  'signal.of_kind',
  (p: { id: string }) => sql`
  select job.kind, array(
    select one.stage ->> 'signal' from json_array_elements(known.stages) as one (stage) where one.stage ->> 'signal' is not null
  ) as signals
  from holdfast.job
  cross join lateral (
    select kind.stages from holdfast.kind where kind.tenant in ('', job.tenant) and kind.name = job.kind order by kind.tenant limit 1
  ) as known
  where job.id = ${p.id}::uuid`,
)
