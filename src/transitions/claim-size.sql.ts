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
 * The size of each of these places in `ready`, and of all up to it. `isFitting` says whether to take one: they are taken in order, as many as
 * fit into so many bytes; the first that is not light in any case.
 */
export const weighing = (places: Sql): Sql => sql`
          select sized.place, sized.bytes, sum(sized.bytes) over (order by sized.number) as bytes_so_far
          from (
            select one.place, one.number, ${pickedBytes} as bytes
            from unnest(${places}) with ordinality as one (place, number)
            cross join lateral (select job_id, stage, ${isLight} as is_light from holdfast.ready where ctid = one.place offset 0) as picked
          ) as sized`

/** Whether to take a row of `weighing`. */
export const isFitting = (soFar: Sql, mostBytes: Sql): Sql => sql`${soFar} <= ${mostBytes} or ${soFar} = weighed.bytes`

/**
 * As many of the picked jobs, in order, as fit into so many bytes; the first one in any case. If all are light, as
 * most are, none is weighed: that would cost a tenth of the claim.
 */
export const fitting = (picked: Sql, mostBytes: number): Sql => sql`
      select case when found.are_light then found.places else array(
        select weighed.place
        from (${weighing(raw('found.places'))}
        ) as weighed
        where ${isFitting(raw('weighed.bytes_so_far'), sql`${mostBytes}::float8`)}
      ) end
      from (
        select array_agg(picked.place) as places, bool_and(picked.is_light) as are_light
        from (${picked}) as picked
      ) as found`
