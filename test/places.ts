/** Moves jobs between tables by hand, as a restored backup, another program or a bug might leave them. */
type Query = (text: string, values?: unknown[]) => Promise<unknown[]>

const requeue = (runAt: string, crashes: string) => `
  insert into holdfast.ready (job_id, run_at, stage, attempt, failures, crashes, is_flawed, kind, queue, tenant, priority, crash_budget, barrier_id, is_part)
  select job.id, ${runAt}, back.stage, back.attempt, back.failures, ${crashes}, back.is_flawed, job.kind, job.queue, job.tenant, job.priority, job.crash_budget,
    job.barrier_id, job.is_part
  from back join holdfast.job on job.id = back.job_id`

const back = 'back as materialized (select * from holdfast.running where job_id = any($1::uuid[]))'
const takingOut = `update holdfast.lease set done = done | holdfast.bits_of(length(done), array(select slot from back where back.lease_id = lease.id))
    where id in (select lease_id from back)`

/** Takes running jobs out of their leases, so that they are in no table. */
export async function takeOut(query: Query, ids: readonly string[]): Promise<void> {
  await query(`with ${back} ${takingOut}`, [ids])
  await query('delete from holdfast.lease where bit_count(done) = length(done)')
}

/** Puts running jobs back into their queues, as if they had been taken from their workers. */
export async function queueAgain(
  query: Query,
  ids: readonly string[],
  how: { crashes?: number; runAt?: string } = {},
): Promise<void> {
  // in one statement: a worker may claim them again at once, and must not lose that attempt as well
  const queued = requeue(how.runAt ?? 'now()', `back.crashes + ${how.crashes ?? 0}`)
  await query(`with ${back}, taken as (${takingOut})${queued}`, [ids])
  await query('delete from holdfast.lease where bit_count(done) = length(done)')
}

/** Makes a queued job wait for items, as if it had not been joined yet. */
export async function makeWait(query: Query, id: string): Promise<void> {
  await query(
    `with gone as (delete from holdfast.ready where job_id = $1 returning *)
    insert into holdfast.waiting (job_id, barrier_id, tenant, attempt, stage, failures, crashes, is_flawed)
    select job_id, barrier_id, tenant, attempt, stage, failures, crashes, is_flawed from gone`,
    [id],
  )
}

/** Queues a job that waits for items. */
export async function endWait(query: Query, id: string): Promise<void> {
  await query(
    `with back as (delete from holdfast.waiting where job_id = $1 returning *)${requeue('now()', 'back.crashes')}`,
    [id],
  )
}

/** Sets the crash counts of jobs, queued or running. */
export async function setCrashes(query: Query, crashes: number, ids?: readonly string[]): Promise<void> {
  const which = ids ? 'any($2::uuid[])' : 'any(array(select id from holdfast.job where $2::uuid[] is null))'
  await query(`update holdfast.ready set crashes = $1 where job_id = ${which}`, [crashes, ids ?? null])
  await query(
    `update holdfast.lease set crashes = array(
      select case when job_id = ${which} then $1::smallint else coalesce(lease.crashes[number], 0::smallint) end
      from unnest(lease.job_ids) with ordinality as held (job_id, number)
    )`,
    [crashes, ids ?? null],
  )
}

/** How to create jobs in bulk: SQL for each of their columns, which may use the number n. */
export interface Crowd {
  count: number
  kind?: string
  queue?: string
  tenant?: string
  priority?: string
  input?: string
  id?: string
}

const insertJobs = ({
  count,
  kind = `'sample'`,
  queue = `'default'`,
  tenant = `'default'`,
  priority = '2',
  input = `'null'::json`,
  id = 'gen_random_uuid()',
}: Crowd) => `
  insert into holdfast.job (id, submitted_at, crash_budget, priority, kind, queue, tenant, input)
  select ${id}, now(), 3, ${priority}, ${kind}, ${queue}, ${tenant}, ${input}
  from generate_series(1, ${count}) as n
  returning *`

/** The statement that creates queued jobs. */
export function queuedCrowd(crowd: Crowd & { runAt?: string }): string {
  return `with made as (${insertJobs(crowd)})
  insert into holdfast.ready (job_id, run_at, kind, queue, tenant, priority, crash_budget)
  select id, ${crowd.runAt ?? 'now()'}, kind, queue, tenant, priority, crash_budget
  from (select *, row_number() over () as n from made) as made`
}

/** The statement that creates finished jobs. */
export function finishedCrowd(crowd: Crowd & { state?: string }): string {
  return `with made as (${insertJobs(crowd)})
  insert into holdfast.outcome (job_id, kind, tenant, finished_at, attempt, stage, failures, crashes, is_flawed, state)
  select id, kind, tenant, now(), 1, 0, 0, 0, false, state
  from (select *, ${crowd.state ?? `'succeeded'`} as state from (select *, row_number() over () as n from made) as made) as made`
}

/** The statement that creates running jobs of a session, all in one lease. */
export function heldCrowd(crowd: Crowd & { sessionId: string; deadlineAt?: string }): string {
  return `with made as (${insertJobs(crowd)})
  insert into holdfast.lease (session_id, deadline_at, due_at, low_id, high_id, stage, priority, kind, queue, tenant, done, job_ids)
  select ${crowd.sessionId}, ${crowd.deadlineAt ?? `now() + interval '1 h'`}, now(), (array_agg(id order by id))[1], (array_agg(id order by id desc))[1], 0, min(priority), min(kind), min(queue),
    min(tenant), repeat('0', count(*)::int)::varbit, array_agg(id)
  from made`
}
