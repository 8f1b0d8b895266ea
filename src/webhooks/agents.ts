import { rootCertificates } from 'node:tls'
import type { Agent } from 'undici'
import type { AddressPolicy } from './address.ts'
import { pinnedLookup } from './lookup.ts'
import type { NameResolver } from './resolver.ts'

/** What agents need. */
export interface AgentOptions {
  policy: AddressPolicy
  resolver: NameResolver
  timeoutMs: number
  ca?: string[]
}

/** How many agents to keep, unless more are in use. The connections of an idle agent end after seconds. */
const mostAgents = 200

interface Entry {
  agent: Promise<Agent>
  users: number
}

/** One agent per tenant, so that the lookup of a connection knows its tenant, and no tenant waits for a connection of another. */
export class Agents {
  readonly #options: AgentOptions
  readonly #entries = new Map<string, Entry>()

  constructor(options: AgentOptions) {
    this.#options = options
  }

  /** Runs `work` with the agent of a tenant. */
  async use<T>(tenant: string, work: (agent: Agent) => Promise<T>): Promise<T> {
    const entry = this.#entries.get(tenant) ?? { agent: agentOf(this.#options, tenant), users: 0 }
    // the most recent goes to the end of the map
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
  // loaded with the first request: it would cost every process a tenth of a second, and most never send one
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
    // the deadline of the request applies; these would only end it with another message
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}
