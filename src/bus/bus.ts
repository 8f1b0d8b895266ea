import type pg from 'pg'
import { Client, connectionOptions, drop } from '../postgres/connection.ts'
import { describe } from '../postgres/error-message.ts'
import { pause, type Service } from '../service/service.ts'

/** A channel of the bus. The bus only wakes: it may lose, repeat or reorder notifications, and polling always backs it up. */
export type Channel = 'holdfast_wake' | 'holdfast_abort' | 'holdfast_event'

/** Receives notifications. */
export interface Bus extends Service {
  /** Whether it receives notifications at the moment. */
  isConnected(): boolean
}

/** What a bus needs. */
export interface BusOptions {
  url: string
  channels: Channel[]
  onNews: (channel: Channel, payload: string) => void
  /** Notifications may have been missed: check the database. */
  onGap: () => void
  onError: (error: unknown) => void
}

/** Makes a bus. */
export function listen(options: BusOptions): Bus {
  return new NotifyBus(options)
}

const probeMs = 5_000
const longestPauseMs = 5_000

/**
 * Postgres NOTIFY, on a connection of its own. A connection that is dead without either side noticing would never receive anything again, so
 * it is probed. A lost one is reopened, and then there was a gap.
 */
class NotifyBus implements Bus {
  readonly #options: BusOptions
  #stopping: AbortController | undefined
  #running: Promise<void> | undefined
  #isConnected = false

  constructor(options: BusOptions) {
    this.#options = options
  }

  isConnected(): boolean {
    return this.#isConnected
  }

  async start(): Promise<void> {
    if (this.#running) return
    this.#stopping = new AbortController()
    this.#running = this.#run(this.#stopping.signal)
  }

  async stop(): Promise<void> {
    this.#stopping?.abort()
    await this.#running
    this.#running = undefined
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      const client = this.#makeClient()
      try {
        await this.#listenOn(client, signal)
      } catch (error) {
        this.#options.onError(describe(error, this.#options.url))
        if (this.#isConnected) failures = 0
      }
      this.#isConnected = false
      drop(client)
      await pause(Math.min(longestPauseMs, 50 * 2 ** failures), signal)
    }
  }

  #makeClient(): pg.Client {
    const { url, onNews } = this.#options
    const client = new Client({ ...connectionOptions(url), query_timeout: probeMs })
    client.on('error', () => {})
    client.on('notification', ({ channel, payload = '' }) => onNews(channel as Channel, payload))
    return client
  }

  async #listenOn(client: pg.Client, signal: AbortSignal): Promise<void> {
    await client.connect()
    for (const channel of this.#options.channels) await client.query(`listen ${channel}`)
    this.#isConnected = true
    this.#options.onGap()
    const broken = new AbortController()
    client.once('end', () => broken.abort())
    const ended = AbortSignal.any([signal, broken.signal])
    while (!ended.aborted) {
      await pause(probeMs, ended)
      if (!ended.aborted) await client.query('/* bus.probe */ select')
    }
    if (!signal.aborted) throw new Error('Connection terminated')
  }
}
