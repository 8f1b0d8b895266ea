import { allDeliveryStates } from '../job/delivery-state.ts'
import { finalStates } from '../job/machine.ts'
import { eventOf, raw, sql, stateList, statement, target } from './sql.ts'
import { requeueing } from './lease.sql.ts'

/**
 * What makes the database itself refuse what the machine does not allow, whoever writes: derived from the machine and laid
 * anew by every migration, so it can't drift from it. That a job is in one place only is held by the keys of each table, and by the
 * statements of lease.sql.ts; the audit looks for what a hand or a restore has made of it.
 */
export const layGuards = [
  statement<never>()(
    'guard.finals',
    () => sql`
    alter table holdfast.outcome
      drop constraint if exists outcome_state,
      add constraint outcome_state check (state in (${stateList(finalStates)}))`,
  ),
  statement<never>()(
    'guard.lease',
    () => sql`
    alter table holdfast.lease
      drop constraint if exists lease_size,
      add constraint lease_size check (length(done) between 1 and cardinality(job_ids))`,
  ),
  statement<never>()(
    'guard.deliveries',
    () => sql`
    alter table holdfast.delivery
      drop constraint if exists delivery_state,
      add constraint delivery_state check (state in (${raw(allDeliveryStates.map((state) => `'${state}'`).join(', '))})),
      drop constraint if exists delivery_end,
      add constraint delivery_end check ((state = 'pending') = (ended_at is null))`,
  ),
  statement<never>()(
    'guard.refuse',
    () => sql`
    create or replace function holdfast.refuse_illegal_move() returns trigger language plpgsql as $$
    begin
      raise exception 'holdfast: %', tg_argv[0] using errcode = 'check_violation';
    end $$`,
  ),
  statement<never>()(
    'guard.outcomes',
    () => sql`
    create or replace trigger outcome_stands before update on holdfast.outcome for each row
    when (new.job_id <> old.job_id or new.state <> old.state or new.attempt <> old.attempt)
    execute function holdfast.refuse_illegal_move('a job that has ended does not end otherwise')`,
  ),
  statement<never>()(
    'guard.attempts',
    () => sql`
    create or replace trigger attempts_grow before update on holdfast.ready for each row
    when (new.job_id <> old.job_id or new.attempt < old.attempt)
    execute function holdfast.refuse_illegal_move('the attempts of a job only grow')`,
  ),
  statement<never>()(
    'guard.leases',
    () => sql`
    create or replace trigger bits_stay before update on holdfast.lease for each row
    when (length(new.done) <> length(old.done) or (old.done & ~ new.done) <> (old.done & ~ old.done))
    execute function holdfast.refuse_illegal_move('a job that has left a lease does not come back to it')`,
  ),
  /**
   * Puts a job whose barrier has joined back in its queue; says whether it waited. Volatile, so that it has a snapshot of its own: the job may
   * have begun to wait after the statement that joins it began.
   */
  statement<never>()(
    'guard.join',
    () => sql`
    create or replace function holdfast.join_parent(parent uuid) returns boolean language plpgsql volatile set enable_seqscan = off as $$
    begin
      with back as (
        delete from holdfast.waiting where waiting.job_id = parent returning waiting.job_id as id, waiting.*
      ),
      queued as (${requeueing({ source: 'back', runAt: raw('now()') })}
        returning ready.*
      )
      insert into holdfast.event (type, state, job_id, kind, tenant, attempt, stage)
      select ${eventOf('join')}, ${target('join')}, queued.job_id, queued.kind, queued.tenant, queued.attempt, queued.stage
      from queued;
      return found;
    end $$`,
  ),
  statement<never>()(
    'guard.view',
    () => sql`
    create or replace view holdfast.job_status as
    select job.id, job.kind, job.queue, job.tenant,
      coalesce(outcome.state, case when ready.job_id is not null then ${target('submit')} when waiting.job_id is not null then ${target('fanOut')}
        else ${target('claim')} end) as state,
      coalesce(outcome.stage, ready.stage, waiting.stage, held.stage) as stage,
      coalesce(outcome.attempt, ready.attempt, waiting.attempt, held.attempt) as attempt,
      coalesce(outcome.failures, ready.failures, waiting.failures, held.failures) as failures,
      coalesce(outcome.crashes, ready.crashes, waiting.crashes, held.crashes) as crashes,
      job.crash_budget, coalesce(ready.priority, job.priority) as priority, job.submitted_at, ready.run_at, held.deadline_at, held.session_id,
      outcome.finished_at, outcome.error, job.barrier_id, job.position, job.is_part,
      coalesce(outcome.is_flawed, ready.is_flawed, waiting.is_flawed, held.is_flawed) as is_flawed, job.item_key, job.input
    from holdfast.job
    left join holdfast.outcome on outcome.job_id = job.id
    left join holdfast.ready on ready.job_id = job.id
    left join holdfast.waiting on waiting.job_id = job.id
    left join lateral (
      select running.stage, running.attempt, running.failures, running.crashes, running.deadline_at, running.session_id, running.is_flawed
      from holdfast.running
      where outcome.job_id is null and ready.job_id is null and waiting.job_id is null
        and job.id between running.low_id and running.high_id and running.job_id = job.id
      limit 1
    ) as held on true`,
  ),
]
