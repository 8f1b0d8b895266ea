import { raw, type Sql, sql, statement } from '../postgres/sql.ts'

/** Kinds to register. Each has the same index in all lists. */
export interface Kinds {
  /** The tenant whose jobs they apply to; empty for all tenants. */
  tenant: string
  names: string[]
  queues: string[]
  priorities: number[]
  crashBudgets: number[]
  stages: string[]
  /** How long their jobs are kept, as JSON; null for the default of the settings. */
  keeps: (string | null)[]
}

/** Whether a kind is registered with exactly these values. */
const isKnown = (given: string) =>
  raw(`(kind.queue, kind.priority, kind.crash_budget, kind.stages::text, kind.keep::text) is not distinct from
    (${given}.queue, ${given}.priority, ${given}.crash_budget, ${given}.stages::text, ${given}.keep::text)`)

const givenKinds = (p: Kinds) => sql`
  unnest(${p.names}::text[], ${p.queues}::text[], ${p.priorities}::smallint[], ${p.crashBudgets}::smallint[], ${p.stages}::text[], ${p.keeps}::text[])
    as given (name, queue, priority, crash_budget, stages, keep)`

/**
 * A CTE that marks kinds as seen if they are already registered with the same values. It skips kinds that were seen a
 * moment ago, because a worker that restarts in a loop would leave a trail of dead rows. It also skips locked rows, so
 * that they don't keep a worker from starting.
 */
export const seeingKinds = (p: Kinds) => sql`seen as (
    update holdfast.kind
    set seen_at = now()
    where tenant = ${p.tenant}::text and name = any(array(
      select kind.name
      from holdfast.kind
      join ${givenKinds(p)} on kind.name = given.name
      where kind.tenant = ${p.tenant}::text and ${isKnown('given')} and kind.seen_at < now() - interval '1 minute'
      for update of kind skip locked
    ))
  )`

/** Inserts or updates kinds, if the condition holds. Kinds that are registered with the same values are left alone. */
export const writeKinds = (p: Kinds, condition: Sql) => sql`
  insert into holdfast.kind (tenant, name, queue, priority, crash_budget, stages, keep)
  select ${p.tenant}::text, name, queue, priority, crash_budget, stages::json, keep::json
  from ${givenKinds(p)}
  where ${condition} and not exists (
      select
      from holdfast.kind
      where kind.tenant = ${p.tenant}::text and kind.name = given.name and ${isKnown('given')}
    )
  order by name
  on conflict (tenant, name) do update
  set queue = excluded.queue, priority = excluded.priority, crash_budget = excluded.crash_budget, stages = excluded.stages, keep = excluded.keep,
    seen_at = now()
  where not ${isKnown('excluded')}`

/** Registers the kinds that this program can run. */
export const registerKinds = statement<never>()(
  'kind.register',
  (p: Kinds) => sql`
  with ${seeingKinds(p)}
  ${writeKinds(p, raw('true'))}`,
)
