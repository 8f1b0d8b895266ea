import { type Known, unknownOption } from '../errors/options.ts'
import type { AnyStage, Backoff, Common, Schema } from './define.ts'
import type { Each, FanOut } from './fan-out.ts'
import type { ScheduleDeclaration, ScheduleTiming } from './schedule.ts'
import type { Wait } from './wait.ts'

type Rules = Known<Pick<AnyStage, 'retries' | 'timeoutMs' | 'backoff'>>

const ofKind: Known<Common<Schema>> = {
  input: true,
  queue: true,
  priority: true,
  crashBudget: true,
  keep: true,
  schedule: true,
  limit: true,
}
/** The options of a schedule's timing. */
export const ofTiming: Known<ScheduleTiming> = {
  cron: true,
  every: true,
  tz: true,
  jitter: true,
  startsAt: true,
  endsAt: true,
  missed: true,
  missedWindow: true,
  missedCap: true,
  overlap: true,
}
const ofSchedule: Known<ScheduleDeclaration> = { ...ofTiming, name: true, input: true, tenant: true, priority: true }
const ofRules: Rules = { retries: true, timeoutMs: true, backoff: true }
const ofBackoff: Known<Backoff> = { baseMs: true, factor: true, maxMs: true }
const ofEach: Known<Each<unknown, unknown>> = { run: true, ...ofRules }
const ofFanOut: Known<FanOut<unknown, unknown, unknown, unknown, unknown>> = {
  fanOut: true,
  item: true,
  key: true,
  each: true,
  join: true,
  tolerate: true,
  expiresMs: true,
}
const ofWait: Known<Wait> = { signal: true, timeoutMs: true }
const ofStage: Known<AnyStage> = { name: true, run: true, wait: true, optional: true, ...ofRules, ...ofFanOut }
const ofSingle = { ...ofKind, ...ofRules, run: true }
const ofStaged = { ...ofKind, stages: true }

/** The first option of a definition that would be ignored, if there is one, as the end of a sentence that begins with the kind. */
export function optionProblem(definition: object, stages: readonly AnyStage[]): string | undefined {
  return (
    ('stages' in definition && definition.stages !== undefined
      ? stagedProblem(definition)
      : singleProblem(definition)) ??
    scheduleProblem(definition as Common<Schema>) ??
    stages.map((stage) => stageProblem(stage)).find((problem) => problem !== undefined)
  )
}

function scheduleProblem({ schedule }: Common<Schema>): string | undefined {
  for (const one of schedule === undefined ? [] : [schedule].flat()) {
    if (typeof one !== 'object' || one === null)
      return 'has a schedule that is not an object; write { cron: … } or { every: … }.'
    const unknown = unknownOption(one, ofSchedule)
    if (unknown) return `has a schedule with the unknown option ${unknown}`
  }
  return undefined
}

function stagedProblem(definition: object): string | undefined {
  const unknown = unknownOption(definition, ofStaged)
  if (!unknown) return undefined
  const stray = Object.keys(definition).find((name) => name in ofStage && !(name in ofStaged))
  return stray
    ? `has the option "${stray}" next to \`stages\`; move it into a stage.`
    : `has the unknown option ${unknown}`
}

function singleProblem(definition: object): string | undefined {
  const unknown = unknownOption(definition, { ...ofSingle, stages: true })
  if (!unknown) return undefined
  const stray = Object.keys(definition).find((name) => name in ofStage && !(name in ofSingle))
  return stray
    ? `has the option "${stray}" outside a stage; write stages: [{ name: …, ${stray}: … }].`
    : `has the unknown option ${unknown}`
}

function stageProblem(stage: AnyStage): string | undefined {
  const where = `has a stage ${JSON.stringify(stage.name)}`
  const unknown = unknownOption(stage, ofStage)
  if (unknown) return `${where} with the unknown option ${unknown}`
  const stray = Object.keys(ofFanOut).find((name) => stage.run && stage[name as keyof AnyStage] !== undefined)
  if (stray) return `${where} with ${stray}, which only a fan-out has.`
  if (stage.wait) return waitingProblem(stage, where)
  const { each } = stage
  const inner =
    backoffProblem(stage.backoff) ?? (typeof each === 'object' && !('stages' in each) ? eachProblem(each) : undefined)
  return inner && `${where} with ${inner}`
}

function waitingProblem(stage: AnyStage, where: string): string | undefined {
  const stray = [...Object.keys(ofRules), ...Object.keys(ofFanOut)].find(
    (name) => stage[name as keyof AnyStage] !== undefined,
  )
  if (stray) return `${where} with ${stray}, which a stage that waits for a signal does not have.`
  const unknown = unknownOption(stage.wait as Wait, ofWait)
  return unknown && `${where} with wait with the unknown option ${unknown}`
}

function eachProblem(each: Each<unknown, unknown>): string | undefined {
  const unknown = unknownOption(each, ofEach)
  return unknown ? `each with the unknown option ${unknown}` : backoffProblem(each.backoff)
}

function backoffProblem(backoff: Backoff | undefined): string | undefined {
  const unknown = unknownOption(backoff ?? {}, ofBackoff)
  return unknown && `backoff with the unknown option ${unknown}`
}
