import { sql, statement } from '../../postgres/sql.ts'

/** Makes the database refuse every ending of one kind, as a user's trigger might. */
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

/** Makes parked outcomes due for their next try. */
export const retryParkedNow = statement<never>()(
  'prove.retry_parked_now',
  () => sql`
  update holdfast.parked_outcome
  set next_at = now()`,
)

/** Makes the database accept those endings again, and parked outcomes due for their next try. */
export const allowEndings = statement<never>()(
  'prove.allow_endings',
  () => sql`
  do $$
  begin
    drop trigger if exists refuse_ending on holdfast.outcome;
    update holdfast.parked_outcome set next_at = now();
  end $$`,
)

/** The jobs whose outcomes are parked. */
export const parkedJobs = statement<{ job_id: string }>()(
  'prove.parked_jobs',
  () => sql`
  select job_id
  from holdfast.parked_outcome`,
)
