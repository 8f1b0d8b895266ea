import { HoldfastError } from '../errors/errors.ts'
import { type Known, refuseUnknown } from '../errors/options.ts'
import { firstIdAt, highestId, lowestId } from '../job/id.ts'
import { isFinal, isState, type State } from '../job/machine.ts'
import { isName, nameRule } from '../job/names.ts'
import { flagOf, mustBeObject, refuse, textOf, timeOf } from '../job/validate-argument.ts'
import { type BulkOperation, ruleOf } from './operations.ts'

/** Which jobs a bulk operation applies to. All conditions must hold; at least one is required, or `all`. */
export interface BulkFilter {
  /** Only jobs of this kind. */
  kind?: string
  /** Only jobs in this queue. */
  queue?: string
  /** Only jobs of this tenant. */
  tenant?: string
  /** Only jobs in this state, or in one of these. Default: every state that the operation applies to. */
  state?: State | State[]
  /** Only jobs that ended with this error code. */
  error?: string
  /** Only jobs whose error message contains this text. */
  errorText?: string
  /** Only jobs whose input, as JSON, contains this text. */
  text?: string
  /** Only jobs submitted at or after this time, by the submitter's clock. */
  since?: Date
  /** Only jobs submitted before this time, by the submitter's clock. */
  until?: Date
  /** Only jobs that ended at or after this time. */
  endedSince?: Date
  /** Only jobs that ended before this time. */
  endedUntil?: Date
  /** Whether fan-out items are changed one by one. Default: false; cancel and redo take items with their job. */
  items?: boolean
  /** Required if there is no other condition: all jobs that the operation applies to, of the tenant if there is one. */
  all?: boolean
}

const known: Known<BulkFilter> = {
  kind: true,
  queue: true,
  tenant: true,
  state: true,
  error: true,
  errorText: true,
  text: true,
  since: true,
  until: true,
  endedSince: true,
  endedUntil: true,
  items: true,
  all: true,
}

/** A filter that was checked, as it is stored. */
export interface StoredFilter {
  kind: string | null
  queue: string | null
  tenant: string | null
  states: State[]
  error: string | null
  errorText: string | null
  text: string | null
  /** Only ids below `until`, and at or above `since`. */
  since: string
  until: string
  endedSince: string | null
  endedUntil: string | null
  items: boolean
}

const mostText = 200
const narrowing = ['kind', 'queue', 'state', 'error', 'errorText', 'text', 'since', 'until', 'endedSince', 'endedUntil']

/** Checks a filter for an operation. Throws option_invalid, and says what to do. */
export function storedFilterOf(operation: BulkOperation, filter: BulkFilter): StoredFilter {
  mustBeObject('option filter', filter)
  refuseUnknown('The option filter', filter, known)
  const { since, until, endedSince, endedUntil, items = false, all = false } = filter
  mustNarrow(filter, flagOf('all', all))
  mustBeApart('since', since, 'until', until)
  mustBeApart('endedSince', endedSince, 'endedUntil', endedUntil)
  mustFitOperation(operation, filter)
  return {
    kind: nameOf('kind', filter.kind),
    queue: nameOf('queue', filter.queue),
    tenant: nameOf('tenant', filter.tenant),
    states: statesOf(operation, filter.state),
    error: searchOf('error', filter.error),
    errorText: searchOf('errorText', filter.errorText),
    text: searchOf('text', filter.text),
    since: since === undefined ? lowestId : firstIdAt(timeOf('since', since)),
    until: until === undefined ? highestId : firstIdAt(timeOf('until', until)),
    endedSince: endedSince === undefined ? null : timeOf('endedSince', endedSince).toISOString(),
    endedUntil: endedUntil === undefined ? null : timeOf('endedUntil', endedUntil).toISOString(),
    items: flagOf('items', items),
  }
}

function mustNarrow(filter: BulkFilter, all: boolean): void {
  const isNarrow = narrowing.some((name) => filter[name as keyof BulkFilter] !== undefined)
  if (isNarrow && all)
    throw new HoldfastError('option_invalid', 'The option all cannot be combined with other conditions; omit it.')
  if (isNarrow || all) return
  throw new HoldfastError(
    'option_invalid',
    `The filter names no jobs. Add a condition (${narrowing.join(', ')}), or all: true for every job that the operation applies to.`,
  )
}

function mustBeApart(first: string, from: Date | undefined, second: string, to: Date | undefined): void {
  if (from === undefined || to === undefined) return
  if (timeOf(first, from) < timeOf(second, to)) return
  throw new HoldfastError('option_invalid', `The option ${first} must be before ${second}; nothing lies between them.`)
}

/** Refuses conditions under which the operation could not change any job. */
function mustFitOperation(operation: BulkOperation, filter: BulkFilter): void {
  const rule = ruleOf(operation)
  const ofEnded = (['error', 'errorText', 'endedSince', 'endedUntil'] as const).find((one) => filter[one] !== undefined)
  if (ofEnded && !rule.states.some(isFinal))
    throw new HoldfastError(
      'option_invalid',
      `The option ${ofEnded} matches only jobs that have ended, and ${operation} applies only to jobs that are ${listed(rule.states)}.`,
    )
  if (filter.items === true && !rule.takesItems)
    throw new HoldfastError(
      'option_invalid',
      `The option items cannot be used with ${operation}: the items of a fan-out are removed with their job.`,
    )
}

function statesOf(operation: BulkOperation, given: State | State[] | undefined): State[] {
  const { states } = ruleOf(operation)
  if (given === undefined) return [...states]
  const asked = [...new Set([given].flat())]
  if (asked.length === 0) return refuse('state must name at least one state', given)
  for (const state of asked) {
    if (!isState(state)) throw new HoldfastError('option_invalid', `${JSON.stringify(state)} is not a state of a job.`)
    if (!states.includes(state))
      throw new HoldfastError(
        'option_invalid',
        `${operation} cannot change jobs that are ${state}, only those that are ${listed(states)}.`,
      )
  }
  return asked
}

function nameOf(option: string, name: string | undefined): string | null {
  if (name === undefined) return null
  if (isName(name)) return name
  throw new HoldfastError('option_invalid', `${JSON.stringify(name)} cannot be the name of a ${option}; ${nameRule}.`)
}

function searchOf(option: string, text: string | undefined): string | null {
  const given = textOf(option, text)
  if (given === null || (given.length > 0 && given.length <= mostText && given.isWellFormed())) return given
  return refuse(`${option} must be from 1 to ${mostText} characters`, given.slice(0, mostText))
}

const either = new Intl.ListFormat('en', { type: 'disjunction' })

function listed(states: readonly State[]): string {
  return either.format(states)
}
