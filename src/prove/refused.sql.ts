import { sql, statement } from '../store/sql.ts'

/** Makes the database refuse every ending of one kind, as a trigger of somebody else might. */
export const refuseEndings = statement<never>()(
  'prove.refuse_endings',
  () => sql`
  do $$
  begin
    create or replace function holdfast.refuse_ending() returns trigger language plpgsql as $refuse$
    begin
      if (select kind from holdfast.job where id = new.job_id) = 'staged' then
        raise exception 'planted: no ending of kind staged';
      end if;
      return new;
    end $refuse$;
    create or replace trigger refuse_ending before insert on holdfast.outcome for each row
    execute function holdfast.refuse_ending();
  end $$`,
)

/** Lets the leader try what is parked at once. */
export const hurryParked = statement<never>()(
  'prove.hurry_parked',
  () => sql`
  update holdfast.parked_outcome
  set next_at = now()`,
)

/** Lets the database accept it again, and the leader try it at once. */
export const allowEndings = statement<never>()(
  'prove.allow_endings',
  () => sql`
  do $$
  begin
    drop trigger if exists refuse_ending on holdfast.outcome;
    update holdfast.parked_outcome set next_at = now();
  end $$`,
)

/** The jobs that wait with their outcomes. */
export const parkedJobs = statement<{ job_id: string }>()(
  'prove.parked_jobs',
  () => sql`
  select job_id
  from holdfast.parked_outcome`,
)
