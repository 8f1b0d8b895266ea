import { raw, sql, statement } from '../store/sql.ts'

/** Names that the prover makes up itself; nothing from outside gets here. */
function checked(name: string): string {
  if (/^[a-z0-9_]+$/.test(name)) return name
  throw new Error(`${name} is not a name that a proof uses.`)
}

const named = (name: string) => raw(checked(name))

/** Makes a database as a copy of another. */
export const copyDatabase = statement<never>()(
  'prove.copy_database',
  (p: { name: string; template: string }) => sql`create database ${named(p.name)} template ${named(p.template)}`,
)

/** Removes a database, whoever is still connected. */
export const dropDatabase = statement<never>()(
  'prove.drop_database',
  (p: { name: string }) => sql`drop database if exists ${named(p.name)} with (force)`,
)

/** Ends every connection to the present database but this one: as near to a restart as a guest may come. */
export const endConnections = statement<{ is_ended: boolean }>()(
  'prove.end_connections',
  () => sql`
  select pg_terminate_backend(pid) as is_ended
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()`,
)

/** The tables that hold anything but the schema's own history, and that of the partitions, which are still there. */
export const tablesToEmpty = statement<{ name: string }>()(
  'prove.tables',
  () => sql`
  select relname as name
  from pg_class
  where relnamespace = 'holdfast'::regnamespace and relkind = 'r' and relname not in ('migration', 'event_partition')`,
)

/** Empties tables, and lets their numbers begin anew. */
export const emptyTables = statement<never>()(
  'prove.empty_tables',
  (p: { names: string[] }) => sql`
  truncate ${raw(p.names.map((name) => `holdfast.${checked(name)}`).join(', '))} restart identity`,
)

/** Whether the present database has a Holdfast schema. */
export const hasSchema = statement<{ has: boolean }>()(
  'prove.has_schema',
  () => sql`select to_regclass('holdfast.ready') is not null as has`,
)

/** Whether the present database holds jobs. */
export const hasJobs = statement<{ has: boolean }>()(
  'prove.has_jobs',
  () => sql`
  select exists (select from holdfast.job) as has`,
)
