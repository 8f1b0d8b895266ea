import { raw, type Sql, sql } from '../postgres/sql.ts'

/** Whether the row in `ready` holds all that a worker needs to know of the job. */
export const isLight = raw('input is not null and (stage = 0 or is_part)')

/** The size of what a claim returns with the row `picked` of `ready`. Sizes are stored next to large values, which are not read. */
const pickedBytes = raw(`case when picked.is_light then 0::float8 else
              coalesce((select payload.bytes from holdfast.job_payload as payload where payload.job_id = picked.job_id), 0)::float8
              + coalesce((
                select sum(output.bytes) from holdfast.stage_output as output where output.job_id = picked.job_id and output.stage < picked.stage
              ), 0)::float8
            end`)

/**
 * As many of the picked jobs, in order, as fit into so many bytes; the first one in any case. If all are light, as
 * most are, none is weighed: that would cost a tenth of the claim.
 */
export const fitting = (picked: Sql, mostBytes: number): Sql => sql`
      select case when found.are_light then found.places else array(
        select weighed.place
        from (
          select sized.place, sized.bytes, sum(sized.bytes) over (order by sized.number) as bytes_so_far
          from (
            select one.place, one.number, ${pickedBytes} as bytes
            from unnest(found.places) with ordinality as one (place, number)
            cross join lateral (select job_id, stage, ${isLight} as is_light from holdfast.ready where ctid = one.place offset 0) as picked
          ) as sized
        ) as weighed
        where weighed.bytes_so_far <= ${mostBytes}::float8 or weighed.bytes_so_far = weighed.bytes
      ) end
      from (
        select array_agg(picked.place) as places, bool_and(picked.is_light) as are_light
        from (${picked}) as picked
      ) as found`
