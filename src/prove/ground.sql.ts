import { raw, sql, statement } from '../store/sql.ts'

/** Names that the prover makes up itself; nothing from outside gets here. */
const named = (name: string) => {
  if (!/^[a-z0-9_]+$/.test(name)) throw new Error(`${name} cannot name a database of a proof.`)
  return raw(name)
}

/** Makes a database as a copy of another. */
export const copyDatabase = statement<never>()(
  'prove.copy_database',
  (p: { name: string; template: string }) => sql`create database ${named(p.name)} template ${named(p.template)}`,
)

/** The same by copying files, which is quicker where the server offers the choice (15 and later). */
export const copyDatabaseFiles = statement<never>()(
  'prove.copy_database_files',
  (p: { name: string; template: string }) => sql`
  create database ${named(p.name)} template ${named(p.template)} strategy file_copy`,
)

/** Removes a database, whoever is still connected. */
export const dropDatabase = statement<never>()(
  'prove.drop_database',
  (p: { name: string }) => sql`drop database if exists ${named(p.name)} with (force)`,
)

/** Ends every connection to the present database but this one: as near to a restart as a guest may come. */
export const endConnections = statement<{ pid: number }>()(
  'prove.end_connections',
  () => sql`
  select pid
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and pg_terminate_backend(pid)`,
)

/** Whether the present database has a Holdfast schema. */
export const hasSchema = statement<{ has: boolean }>()(
  'prove.has_schema',
  () => sql`select to_regclass('holdfast.live_job') is not null as has`,
)

/** Whether the present database holds jobs. */
export const hasJobs = statement<{ has: boolean }>()(
  'prove.has_jobs',
  () => sql`
  select exists (select from holdfast.live_job) or exists (select from holdfast.finished_job) as has`,
)
