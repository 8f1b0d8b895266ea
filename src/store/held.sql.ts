import { sql, statement } from './sql.ts'

/**
 * Which of these live jobs another transaction holds. Those that nobody holds are locked for this one: whatever it does to them next waits
 * for nobody.
 */
export const heldJobs = statement<{ id: string }>()(
  'job.held',
  (p: { ids: string[] }) => sql`
  with free as materialized (
    select job.id
    from holdfast.live_job as job
    where job.id = any(${p.ids}::uuid[])
    for update skip locked
  )
  select job.id
  from holdfast.live_job as job
  where job.id = any(${p.ids}::uuid[]) and not exists (select from free where free.id = job.id)`,
)

/** Removes finished jobs of which a live one has the id, as half a restore leaves them: the live one is about to end, and takes the place. */
export const removeTwins = statement<{ id: string }>()(
  'finished_job.remove_twins',
  (p: { ids: string[] }) => sql`
  delete from holdfast.finished_job as twin
  where twin.id = any(${p.ids}::uuid[]) and exists (select from holdfast.live_job as job where job.id = twin.id)
  returning twin.id`,
)
