import { sql, statement } from '../postgres/sql.ts'
import type { AppliedDefinition } from './definitions.ts'

// one number for all Holdfast processes: held while this database is migrated
const lock = 0x484f4c44

/** Takes the lock, unless another process is migrating this database. It is released when the connection ends. */
export const migrationLock = statement<{ is_locked: boolean }>()(
  'migration.lock',
  () => sql`select pg_try_advisory_lock(${lock}::bigint) as is_locked`,
)

/** The server process that holds the lock. */
export const migrationLockHolder = statement<{ pid: number; application: string | null }>()(
  'migration.lock_holder',
  () => sql`
  select held.pid, activity.application_name as application
  from pg_locks as held
  left join pg_stat_activity as activity on activity.pid = held.pid
  where held.locktype = 'advisory' and held.classid = 0 and held.objid = ${lock}::bigint::oid and held.objsubid = 1 and held.granted
    and held.database = (select oid from pg_database where datname = current_database())`,
)

/** Creates the table that records applied migrations. */
export const ledger = {
  find: statement<{ is_there: boolean }>()(
    'migration.find',
    () => sql`select to_regclass('holdfast.migration') is not null as is_there`,
  ),
  schema: statement<never>()('migration.schema', () => sql`create schema if not exists holdfast`),
  table: statement<never>()(
    'migration.ledger',
    () => sql`
    create table if not exists holdfast.migration (
      number int primary key,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default now()
    )`,
  ),
}

/** The migrations that this database has. */
export const appliedMigrations = statement<{ number: number; name: string; checksum: string }>()(
  'migration.applied',
  () => sql`
  select number, name, checksum
  from holdfast.migration
  order by number`,
)

/** Records a migration, in the transaction that applies it. */
export const recordMigration = statement<never>()(
  'migration.record',
  (p: { number: number; name: string; checksum: string }) => sql`
  insert into holdfast.migration (number, name, checksum)
  values (${p.number}, ${p.name}, ${p.checksum})`,
)

/** The definitions that this database has. */
export const appliedDefinitions = statement<AppliedDefinition>()(
  'definition.applied',
  () => sql`
  select name, checksum, version
  from holdfast.definition`,
)

/** Records a definition, in the transaction that applies it. */
export const recordDefinition = statement<never>()(
  'definition.record',
  (p: AppliedDefinition) => sql`
  insert into holdfast.definition (name, checksum, version)
  values (${p.name}, ${p.checksum}, ${p.version})
  on conflict (name) do update
  set checksum = excluded.checksum, version = excluded.version, applied_at = now()`,
)

/**
 * The server's version, as a number to compare and as a text to show, and the settings that we depend on. Lists of parameters contain nulls,
 * which without `array_nulls` would be read as texts; and with few `extra_float_digits` a time in milliseconds would be rounded to days.
 * A table whose policies apply to this user seems empty to it: jobs would wait, and nothing would say why. A session that takes numbers from
 * the event sequence in advance would use them late, behind readers that have gone past them.
 */
export const serverVersion = statement<{
  number: number
  text: string
  has_array_nulls: boolean
  float_digits: number
  filtered: string[] | null
  is_cached: boolean
}>()(
  'server.version',
  () => sql`
  select current_setting('server_version_num')::int as number, current_setting('server_version') as text,
    current_setting('array_nulls')::boolean as has_array_nulls, current_setting('extra_float_digits')::int as float_digits,
    (
      select array_agg(relname::text order by relname)
      from pg_class
      where relnamespace = to_regnamespace('holdfast') and relrowsecurity and row_security_active(oid)
    ) as filtered,
    exists (select from pg_sequence where seqrelid = to_regclass('holdfast.event_seq') and seqcache > 1) as is_cached`,
)
