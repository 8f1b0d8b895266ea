// Rows that fill the tables.

const jobs = (count, kind, queue) => `
    with made as (
      insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant)
      select gen_random_uuid(), now(), 3, 2, '${kind}', '${queue}', 'default' from generate_series(1, ${count})
      returning *
    )`

/** SQL that adds finished jobs. */
export function finished(count) {
  return `${jobs(count, 'old', 'default')}
    insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state)
    select id, kind, tenant, now(), 1, 0, 0, 0, false, 'succeeded' from made`
}

/** SQL that adds due jobs of a kind that no worker runs. */
export function claimable(count) {
  return `${jobs(count, 'foreign', 'elsewhere')}
    insert into holdfast.ready (job_id, run_at, crash_budget, priority, kind, queue, tenant)
    select id, now(), crash_budget, priority, kind, queue, tenant from made`
}
