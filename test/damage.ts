import type { Fixtures } from './fixtures.ts'

/** JSON of several kilobytes that compresses badly, so that the server stores it apart from its row. */
export const largeJson = `(select json_build_object('text', string_agg(md5(random()::text || n), '')) from generate_series(1, 200) as n)`

/** The tables of values that a table, or its partitions, store apart from their rows. */
const apart = (table: string) => `
  select toast.oid, toast.relname as name
  from pg_class as own
  join pg_class as toast on toast.oid = own.reltoastrelid
  where own.oid = '${table}'::regclass or own.oid in (select inhrelid from pg_inherits where inhparent = '${table}'::regclass)`

/** Changes such tables, which the server allows nobody as long as it knows what they are. */
const changing = (table: string, change: string) => `
  do $$
  declare lost record;
  begin
    for lost in ${apart(table)} loop
      update pg_class set relkind = 'r' where oid = lost.oid;
      ${change}
      update pg_class set relkind = 't' where oid = lost.oid;
    end loop;
  end $$`

/**
 * Makes the server lose every value that a table stores apart from its rows, as a damaged disk does. Reading one of them fails from then on, and
 * everything else can still be read.
 */
export async function loseLargeValues(query: Fixtures['query'], table: string): Promise<void> {
  const keep = `execute format('create table public.%I as select * from pg_toast.%I', 'kept_' || lost.name, lost.name);`
  await query(changing(table, `${keep} execute format('delete from pg_toast.%I', lost.name);`))
  // what is deleted can still be read until it is removed
  for (const { name } of await query<{ name: string }>(apart(table))) await query(`vacuum pg_toast.${name}`)
}

/** Brings back what was lost. */
export async function restoreLargeValues(query: Fixtures['query'], table: string): Promise<void> {
  const put = `execute format('insert into pg_toast.%I select * from public.%I', lost.name, 'kept_' || lost.name);`
  await query(changing(table, put))
}
