import { sql, statement } from '../postgres/sql.ts'

/** How a removed job ended, according to its idempotency key. No row back: it had no key, or that was removed too. */
export const findGone = statement<{ state: string; ended_at: Date }>()(
  'key.gone',
  (p: { id: string; tenant: string | null }) => sql`
  select job_key.state, job_key.ended_at
  from holdfast.job_key
  where job_key.job_id = ${p.id}::uuid and job_key.ended_at is not null and (${p.tenant}::text is null or job_key.tenant = ${p.tenant})
  limit 1`,
)
