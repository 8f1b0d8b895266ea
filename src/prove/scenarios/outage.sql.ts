import { sql, statement } from '../../postgres/sql.ts'

/** Which of these sessions have a lease that has not run out. */
export const leasesLeft = statement<{ id: number }>()(
  'prove.leases_left',
  (p: { sessions: number[] }) => sql`
  select id
  from holdfast.session
  where id = any(${p.sessions}::bigint[]) and ended_at is null and lease_until > now()`,
)

/** Sessions whose workers came back, and whose crashes have not been taken back yet. */
export const unclearedSessions = statement<{ id: number }>()(
  'prove.uncleared_sessions',
  () => sql`
  select id
  from holdfast.session
  where came_back_at is not null and cleared_at is null`,
)

/** The leadership, if it was not renewed for longer than an election takes. */
export const vacantLead = statement<{ term: number }>()(
  'prove.vacant_lead',
  () => sql`
  select term
  from holdfast.leader
  where renewed_at < now() - interval '2 s'`,
)
