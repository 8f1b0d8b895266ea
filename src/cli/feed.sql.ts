import { sql, statement } from '../store/sql.ts'

/** Where a reader of the log stands. Rows come in the order of their transactions, and only once all earlier ones ended. */
export interface Cursor {
  txid: string
  seq: number
}

/** An event as the live view needs it. */
export interface FeedRow extends Cursor {
  at: Date
  job_id: string
  kind: string
  type: string
  attempt: number
  stage: number
  session_id: number | null
  data: unknown
}

const settled = sql`txid < pg_snapshot_xmin(pg_current_snapshot())`
const after = ({ txid, seq }: Cursor) => sql`(txid, seq) > (${txid}::text::xid8, ${seq}::bigint)`

/** The place in the log behind which everything is yet to be seen. */
export const feedStart = statement<{ txid: string }>()(
  'event.start',
  () => sql`
  select pg_snapshot_xmin(pg_current_snapshot())::text as txid`,
)

/** The next events. A row whose transaction commits late is never skipped, only waited for. */
export const feedNext = statement<FeedRow>()(
  'event.next',
  (p: { cursor: Cursor; limit: number }) => sql`
  select txid::text as txid, seq, at, job_id, kind, type, attempt, stage, session_id, data
  from holdfast.event
  where ${settled} and ${after(p.cursor)}
  order by event.txid, seq
  limit ${p.limit}`,
)

/** How many events are left, and where the last of them stands: for a reader that can't keep up. */
export const feedRest = statement<{ count: number; txid: string; seq: number }>()(
  'event.rest',
  (p: { cursor: Cursor }) => sql`
  select count(*) over () as count, txid::text as txid, seq
  from holdfast.event
  where ${settled} and ${after(p.cursor)}
  order by event.txid desc, seq desc
  limit 1`,
)
