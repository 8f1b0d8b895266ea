import { onTestFinished } from 'vitest'
import { openProxy } from '#holdfast/prove/proxy'
import type { Moment } from '#holdfast/prove/proxy-connection'
import { targetOf, throughPort } from '#holdfast/prove/target'
import { Traps } from '#holdfast/prove/traps'

/** A connection to the database, through a proxy, that a test can observe and break. */
export interface Wire {
  /** The same database, through the proxy. */
  url: string
  /** The names of the statements that were sent, in order. */
  readonly statements: string[]
  /** Cuts the connection that next sends a statement of this name. Resolves when it is cut. */
  cut(moment: Moment, statement: string): Promise<void>
  /** Discards everything in both directions, on existing and new connections, without closing any. */
  stall(): void
  /** Closes all connections, and new ones at once. */
  refuse(): void
  /** Closes all connections and lets new ones through. */
  reconnect(): void
}

/** Opens a wire to the server of that URL, until the test ends. */
export async function makeWire(url: string): Promise<Wire> {
  const statements: string[] = []
  const traps = new Traps<undefined>()
  const watcher = traps.watcherFor(
    () => undefined,
    ({ name }) => statements.push(name),
  )
  const proxy = await openProxy(() => targetOf(url), watcher)
  onTestFinished(() => proxy.close())
  return {
    url: throughPort(url, proxy.port),
    statements,
    cut: (moment, statement) =>
      new Promise((resolve) => {
        traps.set({ statement, moment, occurrence: 1 }, ({ connection }) => {
          connection.cut()
          resolve()
        })
      }),
    stall: () => proxy.discard(),
    refuse: () => proxy.refuse(),
    reconnect: () => proxy.restore(),
  }
}
