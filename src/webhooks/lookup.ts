import { lookup as systemLookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import type { AddressPolicy } from './address.ts'

/** Every address of a name. The default asks the system, as everything else on this machine does. */
export type Resolve = (name: string) => Promise<string[]>

/** Thrown if a name leads only to where webhooks may not go. It does not say where: that would be a map of your network. */
export class RefusedNameError extends Error {
  readonly sorts: string[]

  constructor(name: string, sorts: string[]) {
    super(`${name} resolves only to addresses that are ${sorts.join(' or ')}.`)
    this.name = 'RefusedNameError'
    this.sorts = sorts
  }
}

/**
 * The look-up of a connector. The name is resolved once, and the socket gets the addresses that have passed, so a name
 * that changes its answer between the check and the connection gains nothing.
 */
export function pinnedLookup(policy: AddressPolicy, resolve: Resolve = bySystem): LookupFunction {
  return (name, options, answer) => {
    checked(policy, resolve, name).then(
      (found) => {
        if (options.all) return answer(null, found)
        const [first] = found as [Found]
        answer(null, first.address, first.family)
      },
      (error) => answer(error, []),
    )
  }
}

interface Found {
  address: string
  family: number
}

/** The addresses of a name that have passed; at least one. */
async function checked(policy: AddressPolicy, resolve: Resolve, name: string): Promise<Found[]> {
  const found = (await resolve(name)).map((address) => ({
    address,
    family: isIP(address),
    verdict: policy.check(address, name),
  }))
  const good = found.filter(({ family, verdict }) => family !== 0 && verdict.kind !== 'refused')
  if (good.length > 0) return good.map(({ address, family }) => ({ address, family }))
  if (found.length === 0) throw Object.assign(new Error(`${name} has no address.`), { code: 'ENOTFOUND' })
  const sorts = found.map(({ verdict }) => (verdict.kind === 'refused' ? verdict.sort : 'unreadable'))
  throw new RefusedNameError(name, [...new Set(sorts)])
}

async function bySystem(name: string): Promise<string[]> {
  const found = await systemLookup(name, { all: true })
  return found.map(({ address }) => address)
}
