import { allDeliveryStates } from '../job/delivery-state.ts'
import { finalStates } from '../job/machine.ts'
import { raw, sql, stateList, statement } from '../postgres/sql.ts'

/**
 * Makes the database itself refuse what the state machine does not allow, even in manual writes. That a job is in one place only is ensured
 * by the keys of each table and by the statements of src/transitions/leases.sql.ts; the audit finds what a manual write or a restore breaks.
 */
export const guards = [
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
      add constraint lease_size check (length(done) > 0 and length(done) = cardinality(job_ids))`,
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
    execute function holdfast.refuse_illegal_move('a job that has ended cannot change how it ended')`,
  ),
  statement<never>()(
    'guard.attempts',
    () => sql`
    create or replace trigger attempts_grow before update on holdfast.ready for each row
    when (new.job_id <> old.job_id or new.attempt < old.attempt)
    execute function holdfast.refuse_illegal_move('the attempt number of a job only grows')`,
  ),
  statement<never>()(
    'guard.leases',
    () => sql`
    create or replace trigger bits_stay before update on holdfast.lease for each row
    when (length(new.done) <> length(old.done) or (old.done & ~ new.done) <> (old.done & ~ old.done))
    execute function holdfast.refuse_illegal_move('a job that has left a lease cannot return to it')`,
  ),
]
