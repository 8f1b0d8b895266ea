import { sql, statement } from '../postgres/sql.ts'
import {
  type ClaimedDelivery,
  choosingDue,
  claimedRows,
  claimingDue,
  type DeliveryClaim,
  furtherLanes,
} from './claim.sql.ts'

/** A delivery that is due. */
export interface DueDelivery {
  id: string
  tries: number
  /** How long ago it first failed; null if it never did. */
  failed_ms: number | null
}

/**
 * What a claim would take, by what the small columns say of it: whatever else belongs to a delivery may be unreadable. Like a claim, it returns
 * one more row, without an id.
 */
export const dueDeliveries = statement<DueDelivery | { id: null; further: Record<string, string> | null }>()(
  'delivery.due',
  (p: DeliveryClaim) => sql`
  ${choosingDue(p)}
  select chosen.*, null::json as further
  from (
    select delivery.id, delivery.tries, (extract(epoch from now() - delivery.failed_at) * 1000)::float8 as failed_ms
    from holdfast.delivery
    where delivery.id = any(array(select id from due))
    order by delivery.tenant, delivery.lane, delivery.next_at
  ) as chosen
  union all
  select null, null, null, ${furtherLanes}`,
)

/** Claims only these, as far as they are still due. */
export const claimOnly = statement<ClaimedDelivery>()(
  'delivery.claim_only',
  (p: { ids: readonly string[]; claimMs: number }) => sql`
  with due as materialized (
    select delivery.id
    from holdfast.delivery
    where delivery.id = any(${p.ids}::uuid[]) and delivery.state = 'pending' and delivery.next_at <= now()
    for update skip locked
  ),
  claimed as (${claimingDue(p.claimMs)})
  ${claimedRows}`,
)
