import { raw, sql, statement } from '../postgres/sql.ts'

/** Names that the benchmark chooses itself; nothing from outside gets here. */
function named(name: string) {
  if (/^[a-z0-9_]+$/.test(name)) return raw(name)
  throw new Error(`${name} is not a name that a benchmark uses.`)
}

/** Creates an empty database. */
export const createDatabase = statement<never>()(
  'bench.create_database',
  (p: { name: string }) => sql`create database ${named(p.name)} template template0`,
)

/** Drops a database, even if it has connections. */
export const dropDatabase = statement<never>()(
  'bench.drop_database',
  (p: { name: string }) => sql`drop database if exists ${named(p.name)} with (force)`,
)

/** Whether the current database has a Holdfast schema. */
export const hasSchema = statement<{ has: boolean }>()(
  'bench.has_schema',
  () => sql`select to_regclass('holdfast.ready') is not null as has`,
)

/** Whether the current database has jobs. */
export const hasJobs = statement<{ has: boolean }>()(
  'bench.has_jobs',
  () => sql`
  select exists (select from holdfast.job) as has`,
)

/** Whether the current database has jobs that are not final. */
export const hasLiveJobs = statement<{ has: boolean }>()(
  'bench.has_live_jobs',
  () =>
    sql`select exists (select from holdfast.ready) or exists (select from holdfast.lease) or exists (select from holdfast.waiting) as has`,
)

/** The version of the server, and whether a commit is on disk before it is confirmed. */
export const serverFacts = statement<{ version: string; is_durable: boolean }>()(
  'bench.server_facts',
  () => sql`
  select
    current_setting('server_version') as version,
    current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' as is_durable`,
)
