import { sql, statement } from '../store/sql.ts'

/** Where the log ends, and what is behind a place in it. */
export interface TallyRow {
  top: number
  at: Date
  counts: { type: string; state: string | null; count: number }[]
}

/** Counts the events behind a place in the log, by type and by the state that they led to; no more than `most` are looked at. */
export const tallyEvents = statement<TallyRow>()(
  'event.tally',
  (p: { after: number | null; most: number }) => sql`
  select case when log.is_called then log.last_value else 0 end as top, clock_timestamp() as at, coalesce((
    select json_agg(tally)
    from (
      select type, state, count(*) as count
      from (
        select type, state
        from holdfast.event
        where seq > ${p.after}::bigint
        order by seq
        limit ${p.most}
      ) as behind
      group by type, state
    ) as tally
  ), '[]') as counts
  from holdfast.event_seq as log`,
)
