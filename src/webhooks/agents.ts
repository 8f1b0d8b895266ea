import { rootCertificates } from 'node:tls'
import type { Agent } from 'undici'
import type { AddressPolicy } from './address.ts'
import { pinnedLookup } from './lookup.ts'
import type { NameResolver } from './resolver.ts'

/** What agents need to know. */
export interface AgentOptions {
  policy: AddressPolicy
  resolver: NameResolver
  timeoutMs: number
  ca?: string[]
}

/** Agents of tenants that have nothing under way are kept up to this number; the connections of one end after seconds. */
const mostAgents = 200

interface Entry {
  agent: Promise<Agent>
  users: number
}

/** An agent per tenant: so the look-up of a connection knows whose it is, and no tenant waits for a connection of another. */
export class Agents {
  readonly #options: AgentOptions
  readonly #entries = new Map<string, Entry>()

  constructor(options: AgentOptions) {
    this.#options = options
  }

  /** Does something with the agent of a tenant. */
  async use<T>(tenant: string, work: (agent: Agent) => Promise<T>): Promise<T> {
    const entry = this.#entries.get(tenant) ?? { agent: agentOf(this.#options, tenant), users: 0 }
    // the latest goes to the end of the map
    this.#entries.delete(tenant)
    this.#entries.set(tenant, entry)
    entry.users++
    try {
      return await work(await entry.agent)
    } finally {
      entry.users--
      this.#forgetSome()
    }
  }

  /** Ends every connection. */
  async close(): Promise<void> {
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    await Promise.all(entries.map(async ({ agent }) => (await agent).destroy()))
  }

  #forgetSome(): void {
    for (const [tenant, { agent, users }] of this.#entries) {
      if (this.#entries.size <= mostAgents) return
      if (users > 0) continue
      this.#entries.delete(tenant)
      void agent.then((idle) => idle.destroy())
    }
  }
}

async function agentOf({ policy, timeoutMs, resolver, ca }: AgentOptions, tenant: string): Promise<Agent> {
  // loaded with the first post: it would cost every process a tenth of a second, and most never send one
  const { Agent } = await import('undici')
  return new Agent({
    connect: {
      lookup: pinnedLookup({ policy, resolve: resolver.resolve, tenant }),
      timeout: timeoutMs,
      ...(ca ? { ca: [...rootCertificates, ...ca] } : {}),
    },
    connections: 512,
    keepAliveTimeout: 4_000,
    keepAliveMaxTimeout: 10_000,
    maxHeaderSize: 16_384,
    // the deadline of the post rules; these would only end it with another sentence
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}
