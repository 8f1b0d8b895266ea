import { HoldfastError } from '../errors/errors.ts'
import { firstIdAt } from '../job/id.ts'
import { isState, type State } from '../job/machine.ts'
import { idOf, limitOf, mustBeObject, textOf, timeOf } from '../job/validate-argument.ts'
import type { ListFilter } from './job.sql.ts'

/** Which jobs to list. */
export interface ListOptions {
  /** Only jobs of this kind. */
  kind?: string
  /** Only jobs in this queue. */
  queue?: string
  /** Only jobs of this tenant. */
  tenant?: string
  /** Only jobs in this state, or in one of these. */
  state?: State | State[]
  /** Whether to include fan-out items. Default: false. */
  items?: boolean
  /** Only jobs submitted at or after this time, by the submitter's clock. */
  since?: Date
  /** Only jobs submitted before this time, by the submitter's clock. */
  until?: Date
  /** Only jobs submitted before this one: the last id of the previous page. */
  before?: string
  /** Maximum number of jobs, at most 1000. Default: 50. */
  limit?: number
}

/** Checks which jobs to list. */
export function filterOf(options: ListOptions): ListFilter {
  mustBeObject('options of list', options)
  const { kind, queue, tenant, state, items = false, since, until, before, limit = 50 } = options
  const states = state === undefined ? null : [state].flat()
  const odd = states?.find((word) => !isState(word))
  if (odd !== undefined) throw new HoldfastError('option_invalid', `${JSON.stringify(odd)} is not a job state.`)
  return {
    kind: textOf('kind', kind),
    queue: textOf('queue', queue),
    tenant: textOf('tenant', tenant),
    states,
    hasItems: items === true,
    before: earliest(
      before === undefined ? undefined : idOf(before),
      until === undefined ? undefined : firstIdAt(timeOf('until', until)),
    ),
    from: since === undefined ? null : firstIdAt(timeOf('since', since)),
    limit: limitOf(limit, 1000),
  }
}

function earliest(...ids: (string | undefined)[]): string | null {
  return ids.filter((id) => id !== undefined).sort()[0] ?? null
}
