import type { Scope } from '../engine/keys.ts'
import { HoldfastError } from '../errors/errors.ts'

/** Who makes a request. */
export interface Caller {
  /** The id of the key; null where none is needed. */
  keyId: string | null
  /** Whose jobs are seen; null for all tenants. */
  tenant: string | null
  scopes: readonly Scope[]
}

/** Somebody on this machine, where no keys are asked for. */
export const anyoneHere: Caller = { keyId: null, tenant: null, scopes: ['admin'] }

/** Whether the key may do that. */
export function mayDo({ scopes }: Caller, scope: Scope): boolean {
  return scopes.includes(scope) || scopes.includes('admin')
}

/** Throws if the key may not do that. */
export function mustHave(caller: Caller, scope: Scope, isForAll: boolean): void {
  if (!mayDo(caller, scope))
    throw new HoldfastError(
      'scope_missing',
      `This needs a key with the scope ${scope}; yours has ${caller.scopes.join(', ')}.`,
      {
        details: { needed: scope },
      },
    )
  if (isForAll && caller.tenant !== null)
    throw new HoldfastError('scope_missing', `This needs a key for all tenants; yours is that of ${caller.tenant}.`)
}

/** The tenant that a request is about; undefined for all. A key of a tenant never reaches another, whether that exists or not. */
export function tenantFor(caller: Caller, asked: string | undefined): string | undefined {
  if (caller.tenant === null) return asked
  if (asked === undefined || asked === caller.tenant) return caller.tenant
  throw new HoldfastError(
    'tenant_forbidden',
    `This key is that of the tenant ${caller.tenant}; leave the tenant out, or use another key.`,
  )
}

/** Whom the cost of a request is counted for: a tenant, with all its keys, or one key for all tenants. */
export function accountOf({ tenant, keyId }: Caller): string {
  return tenant === null ? `key ${keyId}` : `tenant ${tenant}`
}

/** Who did something, as an option of calls that record it. Whatever they call themselves, their key is named. */
export function byCaller({ keyId }: Caller, name?: string): { by?: string } {
  if (keyId === null) return name === undefined ? {} : { by: name }
  return { by: name === undefined ? `key ${keyId}` : `${name} (key ${keyId})` }
}

/** The same as an option, for calls that take one. */
export function scopeFor(caller: Caller, asked?: string): { tenant?: string } {
  const tenant = tenantFor(caller, asked)
  return tenant === undefined ? {} : { tenant }
}

/** Both: whose it must be, and who does it. */
export function actFor(caller: Caller, asked?: string): { tenant?: string; by?: string } {
  return { ...scopeFor(caller, asked), ...byCaller(caller) }
}
