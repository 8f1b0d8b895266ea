import { HoldfastError } from '../errors/errors.ts'
import type { Scope } from '../keys/keys.ts'

/** Who makes a request. */
export interface Caller {
  /** The id of the key; null where none is needed. */
  keyId: string | null
  /** The tenant whose jobs it may see; null for all tenants. */
  tenant: string | null
  scopes: readonly Scope[]
}

/** A caller on this machine, if the server needs no keys. */
export const anyoneHere: Caller = { keyId: null, tenant: null, scopes: ['admin'] }

/** Whether a caller has a scope. */
export function mayDo({ scopes }: Caller, scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes('admin')
}

/** Throws if a caller lacks a scope, or a key for all tenants where one is required. */
export function mustHave(caller: Caller, scope: Scope, isForAll: boolean): void {
  if (!mayDo(caller, scope))
    throw new HoldfastError(
      'scope_missing',
      `This request requires the scope ${scope}; your key has ${caller.scopes.join(', ')}.`,
      {
        details: { needed: scope },
      },
    )
  if (isForAll && caller.tenant !== null)
    throw new HoldfastError(
      'scope_missing',
      `This request requires a key for all tenants; yours is for the tenant ${caller.tenant}.`,
    )
}

/** The account that the cost of a request is counted for: a tenant with all its keys, or one key for all tenants. */
export function accountOf({ tenant, keyId }: Caller): string {
  return tenant === null ? `key ${keyId}` : `tenant ${tenant}`
}

/** Who does something, as an option for calls that record it. It always names the key, whatever name the caller uses. */
export function byCaller({ keyId }: Caller, name?: string): { by?: string } {
  if (keyId === null) return name === undefined ? {} : { by: name }
  return { by: name === undefined ? `key ${keyId}` : `${name} (key ${keyId})` }
}
