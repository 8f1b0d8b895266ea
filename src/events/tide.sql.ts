import { sql, statement } from '../store/sql.ts'

/** The last number drawn, a transaction id of our own if it is another than is known, and the oldest id that still runs, in this order. */
export const takeMark = statement<{
  top: number
  mark_txid: string | null
  oldest_txid: string
  /** The ids that run in this database, without their epochs; null if that is not asked or not known. */
  running: string[] | null
}>()(
  'event.mark',
  (p: { known: number }) => sql`
  select top, mark_txid::text as mark_txid, oldest_txid::text as oldest_txid, running::text[] as running
  from holdfast.event_mark(${p.known}::bigint)`,
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
      null::text as name
    from pg_stat_activity
    where backend_xid is not null and pid <> pg_backend_pid() and datname = current_database()
    union all
    select null, null, (extract(epoch from clock_timestamp() - prepared) * 1000)::float8, gid
    from pg_prepared_xacts
    where database = current_database()
  ) as writer
  order by since_ms desc nulls last
  limit 1`,
)
