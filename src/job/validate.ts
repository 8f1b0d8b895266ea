import type { AnyJob, AnyStage } from './define.ts'
import { type Each, tolerateProblem } from './fan-out.ts'
import { isName, isPriority, nameRule } from './names.ts'
import { sharedSignal, waitProblem } from './wait.ts'

/** What is wrong with a definition, as the end of a sentence that begins with its kind; undefined if nothing is. */
export function definitionProblem(job: AnyJob): string | undefined {
  if (!isName(job.kind)) return `has an invalid name; ${nameRule}.`
  if (!isName(job.queue)) return `has the queue ${JSON.stringify(job.queue)}; ${nameRule}.`
  if (!isPriority(job.priority)) return `has priority ${job.priority}; use 1 (first) to 4 (last).`
  if (
    job.crashBudget !== undefined &&
    !(Number.isInteger(job.crashBudget) && job.crashBudget >= 1 && job.crashBudget <= 1000)
  )
    return `has crashBudget ${job.crashBudget}; use a whole number from 1 to 1000.`
  if (job.input !== undefined && typeof job.input?.['~standard']?.validate !== 'function')
    return 'has an input that is not a Standard Schema; pass a schema from Zod, Valibot, ArkType or a similar library.'
  if (job.stages.length === 0) return 'has no stages; give it `run`, or `stages` with at least one.'
  const names = job.stages.map((stage) => stage.name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice) return `has two stages named ${JSON.stringify(twice)}; stage names must be unique.`
  const shared = sharedSignal(job.stages)
  if (shared)
    return `has two stages that wait for the signal ${JSON.stringify(shared)}; each needs a signal of its own.`
  return job.stages.map(stageProblem).find((problem) => problem !== undefined)
}

function stageProblem(stage: AnyStage): string | undefined {
  const where = `has a stage ${JSON.stringify(stage.name)}`
  if (!isName(stage.name)) return `${where} with an invalid name; ${nameRule}.`
  const shape = shapeProblem(stage)
  if (shape) return `${where} ${shape}`
  const rules = ruleProblem(stage) ?? (isRuled(stage.each) ? ruleProblem(stage.each, 'each.') : undefined)
  return rules && `${where} ${rules}`
}

type Rules = Pick<AnyStage, 'retries' | 'timeoutMs' | 'backoff' | 'expiresMs'>

function isRuled(each: AnyStage['each']): each is Each<unknown, unknown> {
  return typeof each === 'object' && !('stages' in each)
}

function ruleProblem({ retries, backoff, ...times }: Rules, prefix = ''): string | undefined {
  if (retries !== undefined && !(Number.isInteger(retries) && retries >= 0))
    return `with ${prefix}retries ${retries}; use a non-negative whole number.`
  for (const name of ['timeoutMs', 'expiresMs'] as const) {
    const ms = times[name]
    if (ms !== undefined && !(Number.isFinite(ms) && ms > 0 && ms <= longestTimeoutMs))
      return `with ${prefix}${name} ${ms}; use milliseconds from 1 to ${longestTimeoutMs} (about 23 days).`
  }
  for (const [name, value] of Object.entries(backoff ?? {}))
    if (!(Number.isFinite(value) && value >= (name === 'factor' ? 1 : 0)))
      return `with ${prefix}backoff.${name} ${value}; use a positive number.`
  return undefined
}

function shapeProblem({ run, fanOut, each, join, tolerate, wait }: AnyStage): string | undefined {
  if (wait !== undefined)
    return run || fanOut || each || join
      ? 'with `wait` and something to run; it can do only one of them.'
      : waitProblem(wait)
  if (!run && !fanOut) return 'without a `run` function; give it `run`, `fanOut` and `each`, or `wait`.'
  if (run && (fanOut || each || join)) return 'with both `run` and a fan-out; it can be only one of them.'
  for (const [name, handler] of Object.entries({ run, fanOut, join }))
    if (handler !== undefined && typeof handler !== 'function') return `whose \`${name}\` is not a function.`
  if (fanOut && !isEach(each))
    return 'that fans out without `each`: a function, { run, … }, or a kind made by defineJob.'
  return tolerate === undefined ? undefined : tolerateProblem(tolerate)
}

function isEach(each: AnyStage['each']): boolean {
  if (typeof each === 'function') return true
  return typeof each === 'object' && each !== null && ('stages' in each || typeof each.run === 'function')
}

/** About the longest timeout that a timer supports. */
const longestTimeoutMs = 2_000_000_000
