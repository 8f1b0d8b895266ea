// Resolves names. The lookup of the system (getaddrinfo) blocks one of the few threads that the process shares for as long as a name server is
// silent, and can't be cancelled: a tenant whose name server never answers would delay all webhooks, and all file access. So names are resolved
// without threads, each lookup has a deadline at which its queries are cancelled, and each tenant has a limited number of concurrent lookups.
// The resolver's own timeouts can't be relied on, because they adapt to what a channel has seen. For the same reason, each lookup has its own
// channel.

import { Resolver } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { HoldfastError } from '../errors/errors.ts'
import { type FindHost, makeHosts, parseSearch } from './hosts.ts'
import { Turns } from './turns.ts'

/** Returns all addresses of a name. */
export type Resolve = (name: string, tenant: string) => Promise<string[]>

/** Thrown if a name has no address, or if no name server answered in time. */
export class UnresolvedNameError extends Error {
  readonly isUnanswered: boolean

  constructor(name: string, { isUnanswered }: { isUnanswered: boolean }) {
    super(isUnanswered ? `No name server answered for ${name}.` : `${name} has no address.`)
    this.name = 'UnresolvedNameError'
    this.isUnanswered = isUnanswered
  }
}

/** What a resolver needs. */
export interface ResolverOptions {
  /** Name servers, as IP or IP:port. Default: those of the system. */
  servers?: readonly string[]
  /** Domains to append to a name that is unknown as such. */
  search?: readonly string[]
  /** How long one lookup may take, including the wait for its turn. */
  lookupMs: number
  /** How many concurrent lookups a tenant may have. */
  mostPerTenant: number
  /** Default: the hosts file of the system. */
  findHost?: FindHost
}

/** Resolves names until it is closed. */
export interface NameResolver {
  resolve: Resolve
  /** Cancels the running lookups. */
  close(): void
}

/** Makes a resolver that reads the hosts file first, and then asks name servers. */
export function makeResolver(options: ResolverOptions): NameResolver {
  const { findHost = makeHosts(), lookupMs } = options
  const turns = new Turns(options.mostPerTenant)
  const underWay = new Map<string, Promise<string[]>>()
  const deadlines = new Set<AbortController>()

  async function lookUp(name: string, tenant: string): Promise<string[]> {
    const here = await findHost(name)
    if (here.length > 0) return here
    const over = new AbortController()
    const timer = setTimeout(() => over.abort(new UnresolvedNameError(name, { isUnanswered: true })), lookupMs)
    deadlines.add(over)
    try {
      const end = await turns.take(tenant, over.signal)
      return await askForms(options, name, over.signal).finally(end)
    } finally {
      clearTimeout(timer)
      deadlines.delete(over)
    }
  }

  return {
    resolve(name, tenant) {
      const key = `${tenant} ${name}`
      const known = underWay.get(key)
      if (known) return known
      // concurrent requests to one host share a lookup
      const found = lookUp(name, tenant).finally(() => underWay.delete(key))
      underWay.set(key, found)
      return found
    },
    close() {
      for (const over of deadlines) over.abort(new UnresolvedNameError('a name', { isUnanswered: true }))
    },
  }
}

/** Checks the name servers of the setting. */
export function checkServers(servers: readonly string[]): readonly string[] {
  const wrong = servers.find((server) => !isServer(server))
  if (wrong === undefined) return servers
  throw new HoldfastError(
    'config_invalid',
    `The setting webhookNameServers has a malformed entry, ${JSON.stringify(wrong.slice(0, 100))}. Use an IP address such as 10.0.0.53, or one with a port such as 10.0.0.53:5353 or [fd00::53]:5353.`,
  )
}

/** The search domains of this machine; none where there is no resolv.conf. */
export function systemSearch(path = '/etc/resolv.conf'): string[] {
  try {
    return parseSearch(readFileSync(path, 'utf8'))
  } catch {
    return []
  }
}

function isServer(server: string): boolean {
  if (isIP(server) !== 0) return true
  const [, six, four, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(server) ?? []
  return (isIP(six ?? '') === 6 || isIP(four ?? '') === 4) && Number(port) > 0 && Number(port) < 65_536
}

/** Tries the name as such, then with each search domain. In this order, because no search domain may shadow a public name. */
async function askForms(options: ResolverOptions, name: string, signal: AbortSignal): Promise<string[]> {
  const { search = [] } = options
  const forms = name.endsWith('.') ? [name] : [name, ...search.map((domain) => `${name}.${domain}`)]
  for (const form of forms) {
    const found = await ask(options, form, signal)
    if (found.length > 0) return found
  }
  throw new UnresolvedNameError(name, { isUnanswered: false })
}

/** The addresses of a name according to the name servers, IPv4 first. Throws if none of them answered. */
async function ask({ servers = [], lookupMs }: ResolverOptions, name: string, signal: AbortSignal): Promise<string[]> {
  signal.throwIfAborted()
  const resolver = new Resolver({ timeout: Math.ceil(lookupMs / 4), tries: 4 })
  if (servers.length > 0) resolver.setServers(servers)
  const stop = () => resolver.cancel()
  signal.addEventListener('abort', stop, { once: true })
  const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
  signal.removeEventListener('abort', stop)
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  const isUnanswered = answers.some((answer) => answer.status === 'rejected' && !isAnswer(answer.reason))
  if (found.length === 0 && isUnanswered) throw new UnresolvedNameError(name, { isUnanswered })
  return found
}

/** Whether an error is the answer of a name server, as opposed to silence. */
function isAnswer(error: { code?: string }): boolean {
  return !['ETIMEOUT', 'ECANCELLED', 'ECONNREFUSED', 'ESERVFAIL', 'EREFUSED'].includes(error.code ?? '')
}
