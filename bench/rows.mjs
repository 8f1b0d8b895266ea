// Rows that only have to be there.

/** SQL that adds so many finished jobs. */
export function finished(count) {
  return `insert into holdfast.finished_job (id, submitted_at, finished_at, attempt, stage, failures, crashes, crash_budget, priority, state, kind, queue, tenant)
    select gen_random_uuid(), now(), now(), 1, 0, 0, 0, 3, 2, 'succeeded', 'old', 'default', 'default' from generate_series(1, ${count})`
}

/** SQL that adds so many due jobs of a kind that nobody works on. */
export function claimable(count) {
  return `insert into holdfast.live_job (id, run_at, submitted_at, crash_budget, priority, state, kind, queue, tenant)
    select gen_random_uuid(), now(), now(), 3, 2, 'queued', 'foreign', 'elsewhere', 'default' from generate_series(1, ${count})`
}
