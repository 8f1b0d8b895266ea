import type { HeldFence } from '../job/id.ts'
import { sql, statement } from '../postgres/sql.ts'

/** Looks for the signal that an attempt waits for, and remembers until when it waits. No row: the attempt is no longer held. */
export const awaitSignal = statement<{ is_sent: boolean; payload: string | null; is_over: boolean }>()(
  'signal.await',
  (p: { fence: HeldFence; stage: number; signal: string; timeoutMs: number }) => sql`
  select waited.is_sent, waited.payload, waited.is_over
  from holdfast.lease
  cross join lateral holdfast.await_signal(${p.fence.id}::uuid, ${p.stage}::smallint, ${p.signal}::text, ${p.timeoutMs}::float8) as waited
  where lease.id = ${p.fence.leaseId}::bigint and get_bit(lease.done, ${p.fence.slot}::int) = 0`,
)
