import { sql, statement } from '../postgres/sql.ts'

/** Whether the current database has a Holdfast schema. */
export const hasSchema = statement<{ has: boolean }>()(
  'prove.has_schema',
  () => sql`select to_regclass('holdfast.ready') is not null as has`,
)

/** Whether the current database has jobs. */
export const hasJobs = statement<{ has: boolean }>()(
  'prove.has_jobs',
  () => sql`
  select exists (select from holdfast.job) as has`,
)
