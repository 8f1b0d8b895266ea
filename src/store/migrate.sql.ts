import { sql, statement } from './sql.ts'

// one number for all Holdfast processes: whoever migrates this database holds it
const lock = 0x484f4c44

/** Waits until nobody else migrates this database. */
export const migrationLock = statement<never>()('migration.lock', () => sql`select pg_advisory_lock(${lock}::bigint)`)

/** Makes the place where applied migrations are recorded. */
export const layLedger = {
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

/** The server's version, as a number to compare and as a text to show. */
export const serverVersion = statement<{ number: number; text: string }>()(
  'server.version',
  () => sql`
  select current_setting('server_version_num')::int as number, current_setting('server_version') as text`,
)
