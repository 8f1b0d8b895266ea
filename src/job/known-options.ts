import { type Known, unknownOption } from '../errors/options.ts'
import type { AnyStage, Backoff, Common, Schema } from './define.ts'
import type { Each, FanOut } from './fan-out.ts'

type Rules = Known<Pick<AnyStage, 'retries' | 'timeoutMs' | 'backoff'>>

const ofKind: Known<Common<Schema>> = {
  input: true,
  queue: true,
  priority: true,
  crashBudget: true,
  keep: true,
  limit: true,
}
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
const ofStage: Known<AnyStage> = { name: true, run: true, optional: true, ...ofRules, ...ofFanOut }
const ofSingle = { ...ofKind, ...ofRules, run: true }
const ofStaged = { ...ofKind, stages: true }

/** The first option of a definition that would be ignored, if there is one, as the end of a sentence that begins with the kind. */
export function optionProblem(definition: object, stages: readonly AnyStage[]): string | undefined {
  return (
    ('stages' in definition && definition.stages !== undefined
      ? stagedProblem(definition)
      : singleProblem(definition)) ??
    stages.map((stage) => stageProblem(stage)).find((problem) => problem !== undefined)
  )
}

function stagedProblem(definition: object): string | undefined {
  const unknown = unknownOption(definition, ofStaged)
  if (!unknown) return undefined
  const stray = Object.keys(definition).find((name) => name in ofStage && !(name in ofStaged))
  return stray ? `has no option "${stray}" beside \`stages\`; give it to a stage.` : `has the unknown option ${unknown}`
}

function singleProblem(definition: object): string | undefined {
  const unknown = unknownOption(definition, { ...ofSingle, stages: true })
  if (!unknown) return undefined
  const stray = Object.keys(definition).find((name) => name in ofStage && !(name in ofSingle))
  return stray
    ? `has no option "${stray}" outside of a stage; write stages: [{ name: …, ${stray}: … }].`
    : `has the unknown option ${unknown}`
}

function stageProblem(stage: AnyStage): string | undefined {
  const where = `has a stage ${JSON.stringify(stage.name)}`
  const unknown = unknownOption(stage, ofStage)
  if (unknown) return `${where} with the unknown option ${unknown}`
  const stray = Object.keys(ofFanOut).find((name) => stage.run && stage[name as keyof AnyStage] !== undefined)
  if (stray) return `${where} with ${stray}, which only a fan-out has.`
  const { each } = stage
  const inner =
    backoffProblem(stage.backoff) ?? (typeof each === 'object' && !('stages' in each) ? eachProblem(each) : undefined)
  return inner && `${where} with ${inner}`
}

function eachProblem(each: Each<unknown, unknown>): string | undefined {
  const unknown = unknownOption(each, ofEach)
  return unknown ? `each with the unknown option ${unknown}` : backoffProblem(each.backoff)
}

function backoffProblem(backoff: Backoff | undefined): string | undefined {
  const unknown = unknownOption(backoff ?? {}, ofBackoff)
  return unknown && `backoff with the unknown option ${unknown}`
}
