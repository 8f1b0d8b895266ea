/**
 * Health checks of a long-running process. Alive means that its loops turn, and nothing else: restarting the process does not fix a database. Ready
 * means that it can do its work right now.
 */
import { once } from 'node:events'
import { rename, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Config } from '../config/config.ts'
import { flagOf } from '../config/settings.ts'
import type { Holdfast } from '../engine/engine.ts'
import { errorCodes, HoldfastError, messageOf } from '../errors/errors.ts'
import { Connections } from '../http/connections.ts'
import { loop, within } from '../service/service.ts'
import { livenessOf, type Pulse, stalledOf } from '../service/vitals.ts'
import type { Supervisor } from './supervisor.ts'

/** What a process knows about its health. */
export interface Vital {
  pulses(): Pulse[]
  /** Throws if something is missing. */
  ready(): Promise<void>
}

/** The running health checks of a process. */
export interface Health {
  /** The URL of its port; undefined if it has none. */
  readonly url: string | undefined
  stop(): Promise<void>
}

/** The health of a process that supervises workers. */
export function healthOf(hf: Holdfast, workers: Supervisor): Vital {
  return {
    pulses: () => [...hf.pulses(), ...workers.pulses()],
    async ready() {
      await hf.ready()
      if (!workers.areHeld()) throw new HoldfastError('not_running', 'A worker process has no session.')
    },
  }
}

/** Opens the health port and maintains the health file, if they are configured. */
export async function startHealth(config: Config, vital: Vital, onError: (error: unknown) => void): Promise<Health> {
  const server = config.healthPort === undefined ? undefined : await openPort(config, config.healthPort, vital)
  const file = config.healthFile === undefined ? undefined : keepFile(config.healthFile, config, vital, onError)
  await file?.start()
  const at = server?.address() as AddressInfo | undefined
  return {
    url: at && `http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`,
    async stop() {
      server?.close()
      server?.closeAllConnections()
      await file?.stop()
      // a process that stopped is not alive
      if (config.healthFile !== undefined) await rm(config.healthFile, { force: true })
    },
  }
}

async function openPort(config: Config, port: number, vital: Vital): Promise<Server> {
  const { healthHost } = config
  const ready = shared(() => readinessOf(vital))
  const answers: Record<string, () => Promise<[status: number, body: object]>> = {
    '/livez': async () => {
      const liveness = livenessOf(vital.pulses())
      return [liveness.isAlive ? 200 : 503, liveness]
    },
    '/readyz': ready,
  }
  const server = createServer()
  // protected like the API, because anyone may reach it
  new Connections(server, config, async (request, response, connection) => {
    const answer = answers[(request.url ?? '').split('?')[0] as string]
    const [status, body] = answer ? await answer() : [404, { paths: Object.keys(answers) }]
    response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    response.end(`${JSON.stringify(body)}\n`)
    connection.written()
  })
  const refused = once(server, 'error').then(([error]) => {
    throw new HoldfastError(
      'config_invalid',
      `The health port ${healthHost}:${port} could not be opened: ${messageOf(error)}. Choose another port with ${flagOf('healthPort')}.`,
    )
  })
  server.listen(port, healthHost)
  await Promise.race([once(server, 'listening'), refused])
  refused.catch(() => {})
  return server
}

async function readinessOf({ ready }: Vital): Promise<[number, object]> {
  try {
    await inTime(ready())
    return [200, { isReady: true, code: null, reason: null }]
  } catch (error) {
    // the meaning of the code and not the message: anyone may ask, and the message names the database
    const code = error instanceof HoldfastError ? error.code : 'internal'
    return [503, { isReady: false, code, reason: errorCodes[code].meaning }]
  }
}

const readyMs = 2_000

async function inTime(asked: Promise<void>): Promise<void> {
  if (!(await within(readyMs, asked)))
    throw new HoldfastError('database_unreachable', 'The database did not answer in time.')
}

const sharedMs = 1_000

/** Checks at most once per second, however many probes there are: anyone may ask, and each check costs the database something. */
function shared<T>(ask: () => Promise<T>): () => Promise<T> {
  let last: { atMs: number; answer: Promise<T> } | undefined
  return () => {
    if (!last || performance.now() - last.atMs > sharedMs) last = { atMs: performance.now(), answer: ask() }
    return last.answer
  }
}

const fileMs = 5_000

/** Rewrites the file while the process is alive. An old file means that it is not. */
function keepFile(path: string, config: Config, { pulses }: Vital, onError: (error: unknown) => void) {
  const draft = `${path}.${process.pid}`
  return loop({
    async turn() {
      const all = pulses()
      if (stalledOf(all).length === 0) {
        await writeFile(draft, `${JSON.stringify({ pid: process.pid, aliveAt: new Date(), loops: all })}\n`)
        await rename(draft, path)
      }
      return Math.min(fileMs, config.livenessMs / 4)
    },
    onError,
    errorPauseMs: fileMs,
  })
}
