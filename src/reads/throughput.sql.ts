import { sql, statement } from '../postgres/sql.ts'

/** The end of the log, and the number of events after a position in it. */
export interface TallyRow {
  top: number
  at: Date
  counts: { type: string; state: string | null; count: number }[]
}

/** Counts the events after a position in the log, by type and by the state that they led to. It scans at most `most` events. */
export const tallyEvents = statement<TallyRow>()(
  'event.tally',
  (p: { after: number | null; most: number }) => sql`
  select case when log.is_called then log.last_value else 0 end as top, clock_timestamp() as at, coalesce((
    select json_agg(tally)
    from (
      select type, state, count(*) as count
      from (
        select type, state
        from holdfast.events_after(${p.after}::bigint, 9223372036854775807, ${p.most}::int)
      ) as behind
      group by type, state
    ) as tally
  ), '[]') as counts
  from holdfast.event_seq as log`,
)
