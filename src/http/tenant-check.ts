import { HoldfastError } from '../errors/errors.ts'
import { byCaller, type Caller } from './caller.ts'

/** The tenant that a request is about; undefined for all. A tenant's key never reaches another tenant, whether or not that one exists. */
export function tenantFor(caller: Caller, asked: string | undefined): string | undefined {
  if (caller.tenant === null) return asked
  if (asked === undefined || asked === caller.tenant) return caller.tenant
  throw new HoldfastError(
    'tenant_forbidden',
    `This key is for the tenant ${caller.tenant}; omit the tenant, or use another key.`,
  )
}

/** The tenant that a request is about, as an option. */
export function scopeFor(caller: Caller, asked?: string): { tenant?: string } {
  const tenant = tenantFor(caller, asked)
  return tenant === undefined ? {} : { tenant }
}

/** Both options: the tenant, and who does it. */
export function actFor(caller: Caller, asked?: string): { tenant?: string; by?: string } {
  return { ...scopeFor(caller, asked), ...byCaller(caller) }
}
