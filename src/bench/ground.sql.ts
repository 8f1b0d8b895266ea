import { raw, sql, statement } from '../store/sql.ts'

/** Names that the benchmark makes up itself; nothing from outside gets here. */
function named(name: string) {
  if (/^[a-z0-9_]+$/.test(name)) return raw(name)
  throw new Error(`${name} is not a name that a benchmark uses.`)
}

/** Makes an empty database. */
export const createDatabase = statement<never>()(
  'bench.create_database',
  (p: { name: string }) => sql`create database ${named(p.name)} template template0`,
)

/** Removes a database, whoever is still connected. */
export const dropDatabase = statement<never>()(
  'bench.drop_database',
  (p: { name: string }) => sql`drop database if exists ${named(p.name)} with (force)`,
)

/** Whether the present database has a Holdfast schema. */
export const hasSchema = statement<{ has: boolean }>()(
  'bench.has_schema',
  () => sql`select to_regclass('holdfast.ready') is not null as has`,
)

/** Whether the present database holds jobs. */
export const hasJobs = statement<{ has: boolean }>()(
  'bench.has_jobs',
  () => sql`
  select exists (select from holdfast.job) as has`,
)

/** Whether any job of the present database is alive. */
export const isAlive = statement<{ is: boolean }>()(
  'bench.is_alive',
  () => sql`select exists (select from holdfast.ready) or exists (select from holdfast.lease) or exists (select from holdfast.waiting) as is`,
)

/** What the server is, and whether a commit is on disk before it is answered. */
export const serverFacts = statement<{ version: string; is_durable: boolean }>()(
  'bench.server_facts',
  () => sql`
  select
    current_setting('server_version') as version,
    current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' as is_durable`,
)
