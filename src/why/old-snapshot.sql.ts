import { raw, type Sql } from '../postgres/sql.ts'

/**
 * What keeps the server from vacuuming the rows that claims and settles leave behind: the oldest snapshot that has been open for a minute or
 * longer, of a transaction, a prepared transaction, or a replica that sends feedback; null if there is none. Sessions of other users may be
 * hidden from us.
 */
export const oldestSnapshot: Sql = raw(`(
      select json_build_object('what', holder.what, 'pid', holder.pid, 'name', holder.name, 'application', holder.application, 'since', holder.since)
      from (
        select case backend_type when 'walsender' then 'replica' else 'transaction' end as what, pid, null::text as name,
          nullif(application_name, '') as application, coalesce(xact_start, backend_start) as since, age(backend_xmin) as age
        from pg_stat_activity
        where backend_xmin is not null and pid <> pg_backend_pid() and backend_type in ('client backend', 'walsender')
          and (datname = current_database() or backend_type = 'walsender')
        union all
        select 'prepared', null, gid, null, prepared, age(transaction) from pg_prepared_xacts where database = current_database()
        union all
        select 'slot', active_pid, slot_name, null, null, age(xmin) from pg_replication_slots where xmin is not null and age(xmin) > 10000
      ) as holder
      where holder.since is null or holder.since < now() - interval '1 min'
      order by holder.age desc
      limit 1
    )`)
