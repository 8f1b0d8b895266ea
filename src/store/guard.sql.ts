import { allDeliveryStates } from '../job/delivery-state.ts'
import { finalStates, legalPairs, liveStates } from '../job/machine.ts'
import { raw, type Sql, sql, stateList, statement } from './sql.ts'

/**
 * What makes the database itself refuse what the machine does not allow, whoever writes: derived from the machine and laid
 * anew by every migration, so it can't drift from it.
 */
export const layGuards = [
  statement<never>()(
    'guard.states',
    () => sql`
    alter table holdfast.live_job
      drop constraint if exists live_job_state,
      add constraint live_job_state check (state in (${stateList(liveStates)})),
      drop constraint if exists live_job_lease,
      add constraint live_job_lease check ((state = 'running') = (session_id is not null and deadline_at is not null))`,
  ),
  statement<never>()(
    'guard.finals',
    () => sql`
    alter table holdfast.finished_job
      drop constraint if exists finished_job_state,
      add constraint finished_job_state check (state in (${stateList(finalStates)}))`,
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
      raise exception 'holdfast: a job cannot go from % (attempt %) to % (attempt %)',
        old.state, old.attempt, new.state, new.attempt using errcode = 'check_violation';
    end $$`,
  ),
  statement<never>()(
    'guard.moves',
    () => sql`
    create or replace trigger legal_moves before update on holdfast.live_job for each row
    when (new.attempt < old.attempt or (old.state, new.state) not in (${pairs()}))
    execute function holdfast.refuse_illegal_move()`,
  ),
  statement<never>()(
    'guard.view',
    () => sql`
    create or replace view holdfast.job as
    select id, kind, queue, tenant, state, stage, attempt, failures, crashes, crash_budget, priority, submitted_at,
      run_at, deadline_at, session_id, null::timestamptz as finished_at, null::json as error, barrier_id, position, is_part, input
    from holdfast.live_job
    union all
    select id, kind, queue, tenant, state, stage, attempt, failures, crashes, crash_budget, priority, submitted_at,
      null, null, null, finished_at, error, barrier_id, position, is_part, input
    from holdfast.finished_job`,
  ),
]

function pairs(): Sql {
  const moving = legalPairs().filter(([from, to]) =>
    [from, to].every((state) => liveStates.some((live) => live === state)),
  )
  const staying = liveStates.map((state) => [state, state])
  return raw([...moving, ...staying].map(([from, to]) => `('${from}', '${to}')`).join(', '))
}
