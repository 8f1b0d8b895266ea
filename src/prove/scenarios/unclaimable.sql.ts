import { sql, statement } from '../../postgres/sql.ts'

/** Makes the database reject every claim of two kinds, as a user's trigger might. */
export const refuseClaims = statement<never>()(
  'prove.refuse_claims',
  () => sql`
  do $$
  begin
    create or replace function holdfast.refuse_claim() returns trigger language plpgsql as $refuse$
    begin
      if new.kind in ('staged', 'limited') then
        raise exception 'planted: no claim of kind %', new.kind;
      end if;
      return new;
    end $refuse$;
    create or replace trigger refuse_claim before insert on holdfast.lease for each row
    execute function holdfast.refuse_claim();
  end $$`,
)

/** Makes the database accept those claims again, and their jobs due. */
export const allowClaims = statement<never>()(
  'prove.allow_claims',
  () => sql`
  do $$
  begin
    drop trigger if exists refuse_claim on holdfast.lease;
    update holdfast.ready set run_at = now() where kind in ('staged', 'limited') and run_at > now();
  end $$`,
)
