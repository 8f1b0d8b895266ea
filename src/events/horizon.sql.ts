import { raw, sql, statement } from '../postgres/sql.ts'

/** Returns the last number drawn, a transaction id of our own if that number is new, and the oldest running id, read in this order. */
export const takeMark = statement<{
  top: number
  mark_txid: string | null
  oldest_txid: string
  /** The ids that run in this database, without their epochs; null if they were not needed or are not visible. */
  running: string[] | null
  /** Identifies the log. It changes with a restore. */
  log_id: string
}>()(
  'event.mark',
  (p: { known: number }) => sql`
  select top, mark_txid::text as mark_txid, oldest_txid::text as oldest_txid, running::text[] as running, log_id
  from holdfast.event_mark(${p.known}::bigint)`,
)

/** The transactions that write to this database, as far as this user may see them. */
export const openWriters = raw(`
    select pid, application_name as application, null::text as prepared, backend_xid as xid,
      (extract(epoch from clock_timestamp() - xact_start) * 1000)::float8 as for_ms
    from pg_stat_activity
    where backend_xid is not null and pid <> pg_backend_pid() and datname = current_database()
    union all
    select null, null, gid, transaction, (extract(epoch from clock_timestamp() - prepared) * 1000)::float8
    from pg_prepared_xacts
    where database = current_database()
  `)

/** The transaction that holds the readers back: the oldest one that writes. */
export const oldestWriter = statement<{ pid: number | null; application: string | null; prepared: string | null }>()(
  'event.oldest_writer',
  () => sql`
  select pid, application, prepared
  from (${openWriters}) as writer
  order by for_ms desc nulls last
  limit 1`,
)
