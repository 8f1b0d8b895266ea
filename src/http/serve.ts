import type { Holdfast } from '../engine/engine.ts'
import { type ErrorCode, HoldfastError, messageOf } from '../errors/errors.ts'
import { pause } from '../service/service.ts'
import { notYet } from './gateway.ts'
import type { HttpOptions } from './http.ts'
import { type HttpServer, makeHttpServer } from './server.ts'

/** What a server needs that connects its own engine. */
export interface ServeOptions extends Omit<HttpOptions, 'engine'> {
  /** Connects. Retried until it succeeds. */
  reach: () => Promise<Holdfast>
  /** Called once, when there is an engine. */
  onReady?: (hf: Holdfast) => void
}

const firstPauseMs = 200
const longestPauseMs = 5_000

/**
 * Serves the HTTP API, with or without a database: without one, it reports why it is not ready, and becomes ready once there is one. It also runs a
 * reaper, so that remote workers need no other process.
 */
export function makeServing({ reach, onReady = () => {}, ...options }: ServeOptions): HttpServer {
  const { log } = options
  const ending = new AbortController()
  let engine: Holdfast | undefined
  let onError: ErrorCode = 'not_running'
  let told = ''
  let reaching: Promise<void> | undefined
  const server = makeHttpServer({
    ...options,
    engine: () => {
      if (engine) return engine
      throw notYet(onError)
    },
  })

  async function reachOut(): Promise<void> {
    for (let tries = 0; !ending.signal.aborted; tries++) {
      try {
        const reached = await reach()
        if (ending.signal.aborted) return await reached.close()
        await reached.reap().catch((error) => reached.close().then(() => Promise.reject(error)))
        engine = reached
        onReady(reached)
        return
      } catch (error) {
        const reason = messageOf(error)
        if (reason !== told) log.warn({ reason }, 'not ready yet; retrying')
        told = reason
        onError = error instanceof HoldfastError ? error.code : 'internal'
        await pause(Math.min(longestPauseMs, firstPauseMs * 2 ** tries), ending.signal)
      }
    }
  }

  let stopping: Promise<void> | undefined
  async function stop(): Promise<void> {
    ending.abort()
    await server.stop()
    await reaching
    await engine?.close()
  }

  return {
    url: server.url,
    async start() {
      await server.start()
      reaching ??= reachOut()
    },
    stop() {
      stopping ??= stop()
      return stopping
    },
  }
}
