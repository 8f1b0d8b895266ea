import { isIP, type LookupFunction } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { AddressPolicy } from './address.ts'
import { type Resolve, UnresolvedNameError } from './resolver.ts'

/** Thrown if a name resolves only to addresses that are not allowed. For the operator only: it would show a tenant your network. */
export class RefusedNameError extends Error {
  readonly host: string
  readonly sorts: string[]

  constructor(host: string, sorts: string[]) {
    super(`${host} resolves only to addresses that are ${sorts.join(' or ')}.`)
    this.name = 'RefusedNameError'
    this.host = host
    this.sorts = sorts
  }
}

/** What a lookup needs. */
export interface LookupParts {
  policy: AddressPolicy
  resolve: Resolve
  tenant: string
}

/** The minimum duration of a failed lookup: otherwise its duration would show whether an internal name exists. */
const leastFailureMs = 300

/**
 * The lookup of a connection. The name is resolved once, and the socket gets only addresses that were checked, so a name that changes its
 * answer between the check and the connection gains nothing. It is not called for IP addresses: the URL of each request is checked for those.
 */
export function pinnedLookup(parts: LookupParts): LookupFunction {
  return (name, options, answer) => {
    const startedAt = performance.now()
    checked(parts, name).then(
      (found) => {
        if (options.all) return answer(null, found)
        const [first] = found as [Found]
        answer(null, first.address, first.family)
      },
      async (error) => {
        await pause(Math.max(0, leastFailureMs - (performance.now() - startedAt)))
        answer(error, [])
      },
    )
  }
}

interface Found {
  address: string
  family: number
}

/** The allowed addresses of a name; at least one. */
async function checked({ policy, resolve, tenant }: LookupParts, name: string): Promise<Found[]> {
  const found = (await resolve(name, tenant)).map((address) => ({
    address,
    family: isIP(address),
    verdict: policy.check(address, name),
  }))
  const good = found.filter(({ family, verdict }) => family !== 0 && verdict.kind !== 'refused')
  if (good.length > 0) return good.map(({ address, family }) => ({ address, family }))
  if (found.length === 0) throw new UnresolvedNameError(name, { isUnanswered: false })
  const sorts = found.map(({ verdict }) => (verdict.kind === 'refused' ? verdict.sort : 'unreadable'))
  throw new RefusedNameError(name, [...new Set(sorts)])
}
