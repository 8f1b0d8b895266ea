/**
 * Schedules that kinds declare in code. A worker that starts writes them, each only if its declaration differs from the one that wrote the
 * row: so what was changed at run time stays, whatever is deployed, until the declaration itself changes.
 */
import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import type { Flow } from '../job/middleware.ts'
import type { ScheduleDeclaration } from '../job/schedule.ts'
import type { Store } from '../postgres/store.ts'
import { prepare } from '../submit/prepare.ts'
import { prepareThrough } from '../submit/prepare-through.ts'
import { checksumOf, checkTiming, type Definition, kindParts, scheduleName, scheduleTenant } from './definition.ts'
import { databaseTime, setSchedule, undeclareSchedules } from './schedule.sql.ts'
import { slotsOf } from './slots.ts'

/** A schedule that a kind declares, with its input as the code has it. A middleware may store it in another form. */
type Declared = Definition & { job: AnyJob }

/** Checks the schedules that kinds declare. Throws kind_invalid. */
export async function declaredBy(config: Config, jobs: readonly AnyJob[]): Promise<Declared[]> {
  const all: Declared[] = []
  for (const job of jobs)
    for (const declaration of declarationsOf(job)) {
      const definition = await definitionOf(config, job, declaration)
      if (all.some(({ name, tenant }) => name === definition.name && tenant === definition.tenant))
        throw refusal(
          job,
          `declares a second schedule named ${JSON.stringify(definition.name)}; give each its own name.`,
        )
      all.push({ ...definition, job })
    }
  return all
}

function declarationsOf({ schedule }: AnyJob): readonly ScheduleDeclaration[] {
  return schedule === undefined ? [] : [schedule].flat()
}

async function definitionOf(config: Config, job: AnyJob, declaration: ScheduleDeclaration): Promise<Definition> {
  try {
    const tenant = scheduleTenant(declaration.tenant)
    const { input, limitKey } = await prepare(config, job, declaration.input, { tenant })
    return {
      ...checkTiming(declaration),
      ...kindParts(job, config.crashBudget),
      tenant,
      name: scheduleName(declaration.name ?? job.kind),
      limitKey,
      input: String(input),
    }
  } catch (error) {
    throw refusal(job, `declares a schedule that cannot be used. ${messageOf(error)}`, error)
  }
}

function refusal({ kind }: AnyJob, problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError('kind_invalid', `Kind ${JSON.stringify(kind)} ${problem}`, { cause })
}

/** The limit of a tenant is for callers; what is declared in code is bounded by the code. */
const mostDeclared = 2_147_483_647

/** Writes the schedules that kinds declare, and removes those that they no longer declare, unless they were changed at run time. */
export async function declareSchedules(
  { store, config, flow }: { store: Store; config: Config; flow: Flow },
  jobs: readonly AnyJob[],
): Promise<void> {
  const declared = await declaredBy(config, jobs)
  if (declared.length > 0) {
    const [{ now } = { now: new Date() }] = await store.run(databaseTime, {})
    for (const { job, ...definition } of declared) {
      const { tenant } = definition
      const through = { job, input: JSON.parse(definition.input), options: { tenant } }
      const { input } = flow.isEmpty ? definition : await prepareThrough({ config, flow }, through)
      // it may have ended long ago, and must not keep a worker from starting
      const nextMs = slotsOf(definition).next(now.getTime())
      const nextAt = nextMs === null ? null : new Date(nextMs)
      const most = mostDeclared
      const params = {
        ...definition,
        input: String(input),
        nextAt,
        revision: null,
        declared: checksumOf(definition),
        by: 'deploy',
        most,
      }
      await store.contend(setSchedule, params)
    }
  }
  await store.contend(undeclareSchedules, { kinds: jobs.map(({ kind }) => kind), kept: declared })
}
