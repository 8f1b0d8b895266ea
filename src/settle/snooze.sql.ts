/**
 * Attempts that are given back until later. Their jobs are queued again, with the time in `run_at`: nothing holds a timer, so a crash
 * changes nothing. A job that waits for a signal is queued in the same way, until its wait ends; see src/transitions/signal.sql.ts.
 */
import type { HeldFence } from '../job/id.ts'
import { plainList, textList } from '../postgres/array-text.ts'
import { raw, sql, statement } from '../postgres/sql.ts'
import { requeueing, takingOut } from '../transitions/leases.sql.ts'
import { wakeIdle } from '../transitions/wake.sql.ts'
import { announcing, type Moved, moved } from './settle.sql.ts'

/** Queues the jobs of attempts again, each after a delay that its handler asked for. Costs no retry. */
export const snoozeJobs = statement<Moved>()(
  'job.snooze',
  (p: { fences: HeldFence[]; delaysMs: number[] }) => sql`
  with ${takingOut(p.fences, { names: 'delay_ms', lists: sql`${plainList(p.delaysMs)}::float8[]` })},
  back as (${requeueing({ source: 'gone', runAt: raw(`now() + back.delay_ms * interval '1 ms'`) })}
  ),${announcing('snooze', raw(`json_build_object('runAt', now() + delay_ms * interval '1 ms')`))}
  select ${moved(p.fences, 'gone')}
  from gone`,
)

/** Queues jobs that wait for a signal until their wait ends. A job whose signal has come since its attempt looked is due at once. */
export const awaitSignals = statement<Moved>()(
  'job.await',
  (p: { fences: HeldFence[]; signals: string[] }) => sql`
  with ${takingOut(p.fences, { names: 'signal', lists: sql`${textList(p.signals)}::text[]` })},
  waits as materialized (
    select gone.*, holdfast.wait_until(gone.id, gone.stage, gone.signal) as wait_until
    from gone
  ),
  back as (${requeueing({ source: 'waits', runAt: raw('back.wait_until') })}
  ),${announcing('snooze', raw(`json_build_object('runAt', wait_until, 'signal', signal)`), 'waits')}
  select ${moved(p.fences, 'waits')}, case when bool_or(wait_until <= now()) then ${wakeIdle} end as woken
  from waits`,
)
