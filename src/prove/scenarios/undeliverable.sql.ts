import { eventOf, sql, statement } from '../../postgres/sql.ts'

/** Makes the database reject every delivery of one type of event, and every claim of deliveries of another, as a user's trigger might. */
export const refuseDeliveries = statement<never>()(
  'prove.refuse_deliveries',
  () => sql`
  do $$
  begin
    create or replace function holdfast.refuse_delivery() returns trigger language plpgsql as $refuse$
    begin
      if tg_op = 'INSERT' and new.type = ${eventOf('advance')} then
        raise exception 'planted: no delivery of this type';
      end if;
      if tg_op = 'UPDATE' and new.type = ${eventOf('submit')} and new.tries > old.tries then
        raise exception 'planted: no claim of this type';
      end if;
      return new;
    end $refuse$;
    create or replace trigger refuse_delivery before insert or update on holdfast.delivery for each row
    execute function holdfast.refuse_delivery();
  end $$`,
)

/** Makes parked events due for their next try. */
export const replanNow = statement<never>()(
  'prove.replan_now',
  (p: { group: string }) => sql`
  update holdfast.parked_event
  set replay_at = now()
  where group_name = ${p.group}`,
)

/** Makes the database accept deliveries and claims again, and makes what was never claimed due. */
export const acceptDeliveries = statement<never>()(
  'prove.accept_deliveries',
  () => sql`
  do $$
  begin
    drop trigger if exists refuse_delivery on holdfast.delivery;
    update holdfast.delivery set next_at = now() where state = 'pending' and tries = 0 and next_at > now();
  end $$`,
)
