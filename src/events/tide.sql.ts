import { sql, statement } from '../store/sql.ts'

/** The last number drawn, the next transaction id, and the oldest one that still runs, in this order. */
export const takeMark = statement<{ top: number; next_txid: string; oldest_txid: string }>()(
  'event.mark',
  () => sql`
  select top, next_txid::text as next_txid, oldest_txid::text as oldest_txid
  from holdfast.event_mark()`,
)

/** Who holds the readers back: the oldest transaction that has an id, as far as this user may see it. */
export const oldestWriter = statement<{
  pid: number | null
  application: string | null
  since_ms: number | null
  name: string | null
}>()(
  'event.oldest_writer',
  () => sql`
  select *
  from (
    select pid, application_name as application, (extract(epoch from clock_timestamp() - xact_start) * 1000)::float8 as since_ms,
      null::text as name, backend_xid::text::bigint as txid
    from pg_stat_activity
    where backend_xid is not null and pid <> pg_backend_pid()
    union all
    select null, null, (extract(epoch from clock_timestamp() - prepared) * 1000)::float8, gid, transaction::text::bigint
    from pg_prepared_xacts
  ) as writer
  order by since_ms desc nulls last
  limit 1`,
)
