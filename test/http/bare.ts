import { onTestFinished } from 'vitest'
import { type GivenSettings, readConfig } from '#holdfast/config/config'
import { makeLog } from '#holdfast/engine/log'
import { notYet } from '#holdfast/http/gateway'
import { type HttpServer, makeHttpServer } from '#holdfast/http/server'

/** A server without a database. */
export interface BareServer {
  port: number
  server: HttpServer
  /** What one of its metrics says. */
  metric(line: string): Promise<number>
}

/** Starts a server without a database, which is enough for what is decided before anything is looked up. Stopped at the end of the test. */
export async function bareServer(settings: GivenSettings = {}, needsKey = false): Promise<BareServer> {
  const config = readConfig({ httpPort: 0, httpDrainMs: 0, ...settings }, {})
  const engine = () => {
    throw notYet('not_running')
  }
  const server = makeHttpServer({ engine, config, log: makeLog('silent'), needsKey })
  await server.start()
  onTestFinished(() => server.stop())
  return {
    port: Number(new URL(server.url()).port),
    server,
    async metric(line) {
      const lines = (await (await fetch(`${server.url()}/metrics`)).text()).split('\n')
      return Number(lines.find((one) => one.startsWith(`${line} `))?.slice(line.length + 1) ?? 0)
    },
  }
}
