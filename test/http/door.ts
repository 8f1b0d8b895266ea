import type { Holdfast } from 'holdfast'
import { type Client, createClient } from 'holdfast/client'
import type { HttpOptions } from 'holdfast/http'
import { type HttpServer, makeHttpServer } from '#holdfast/http/server'
import type { Scope } from '#holdfast/keys/keys'
import { test as base } from '../fixtures.ts'

export { expect, gate, until } from '../fixtures.ts'

/** A server on the test's database, and ways to call it. */
export interface Served {
  url: string
  server: HttpServer
  client: Client
  /** A client with a key of its own. */
  as(tenant: string | null, ...scopes: Scope[]): Promise<Client & { key: string }>
  /** A request by hand. */
  call(path: string, init?: RequestInit & { key?: string }): Promise<Response>
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
}

/** A test with a way to serve a Holdfast over HTTP, stopped at its end. */
export const test = base.extend<{ serve: (hf: Holdfast, options?: Partial<HttpOptions>) => Promise<Served> }>({
  serve: async ({ task: _task }, use) => {
    const servers: HttpServer[] = []
    await use(async (hf, options = {}) => {
      const config = { ...hf.config, httpPort: 0, ...options.config }
      const server = makeHttpServer({ engine: () => hf, log: silent, needsKey: false, ...options, config })
      await server.start()
      servers.push(server)
      return served(hf, server)
    })
    await Promise.all(servers.map((server) => server.stop()))
  },
})

/** Nobody reads it. */
export const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

function served(hf: Holdfast, server: HttpServer): Served {
  const url = server.url()
  const call: Served['call'] = (path, { key, ...init } = {}) =>
    fetch(url + path, {
      ...init,
      headers: { ...(init.headers as object), ...(key ? { authorization: `Bearer ${key}` } : {}) },
    })
  return {
    url,
    server,
    client: createClient({ url }),
    async as(tenant, ...scopes) {
      const { key } = await hf.keys.create({ name: 'test', tenant, scopes })
      return Object.assign(createClient({ url, key }), { key })
    },
    call,
    post: (path, body, headers = {}) =>
      call(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
  }
}

/** The problem in an answer. */
export async function problem(response: Response): Promise<{ code: string; detail: string }> {
  return (await response.json()) as { code: string; detail: string }
}
