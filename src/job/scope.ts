/** Limits an operation to one tenant. */
export interface TenantScope {
  /** Only what belongs to this tenant. Default: all tenants. */
  tenant?: string
}

/** Who makes a change. */
export interface Actor {
  /** Who makes the change; recorded with its event. */
  by?: string
}
