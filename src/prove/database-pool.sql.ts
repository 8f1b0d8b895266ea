import { raw, sql, statement } from '../postgres/sql.ts'

/** Names that the prover chooses itself; nothing from outside gets here. */
function checked(name: string): string {
  if (/^[a-z0-9_]+$/.test(name)) return name
  throw new Error(`${name} is not a name that a proof uses.`)
}

const named = (name: string) => raw(checked(name))

/** Creates a database as a copy of another. */
export const copyDatabase = statement<never>()(
  'prove.copy_database',
  (p: { name: string; template: string }) => sql`create database ${named(p.name)} template ${named(p.template)}`,
)

/** Drops a database, even if it has connections. */
export const dropDatabase = statement<never>()(
  'prove.drop_database',
  (p: { name: string }) => sql`drop database if exists ${named(p.name)} with (force)`,
)

/** Ends every connection to the current database but this one. */
export const endConnections = statement<{ is_ended: boolean }>()(
  'prove.end_connections',
  () => sql`
  select pg_terminate_backend(pid) as is_ended
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`,
)

/** The tables to empty: all but the records of migrations and of partitions, which still exist. */
export const tablesToEmpty = statement<{ name: string }>()(
  'prove.tables',
  () => sql`
  select relname as name
  from pg_class
  where relnamespace = 'holdfast'::regnamespace and relkind = 'r' and relname not in ('migration', 'definition', 'event_partition')`,
)

/** Empties tables and restarts their sequences. */
export const emptyTables = statement<never>()(
  'prove.empty_tables',
  (p: { names: string[] }) => sql`
  truncate ${raw(p.names.map((name) => `holdfast.${checked(name)}`).join(', '))} restart identity`,
)
