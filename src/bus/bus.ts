import pg from 'pg'
import { pause, type Service } from '../service/service.ts'
import { connectionOptions, drop } from '../store/connection.ts'
import { describe } from '../store/describe.ts'

/** What a bus may carry. It only wakes: it may lose, repeat or reorder, and polling is always behind it. */
export type Channel = 'holdfast_wake' | 'holdfast_abort' | 'holdfast_event'

/** Hears what others announce. */
export interface Bus extends Service {
  /** Whether it hears at this moment. */
  isConnected(): boolean
}

/** What a bus needs. `onGap`: something may have been missed; look for yourself. */
export interface BusOptions {
  url: string
  channels: Channel[]
  onNews: (channel: Channel, payload: string) => void
  onGap: () => void
  onTrouble: (error: unknown) => void
}

const probeMs = 5_000

/**
 * Postgres NOTIFY on a connection of its own. A connection that is silently dead would be deaf for ever, so it is probed;
 * a lost one is made again, and then whoever listens is told that there was a gap.
 */
export function listen(options: BusOptions): Bus {
  let stopping: AbortController | undefined
  let running: Promise<void> | undefined
  let isConnected = false

  async function hearOn(client: pg.Client, signal: AbortSignal): Promise<void> {
    await client.connect()
    for (const channel of options.channels) await client.query(`listen ${channel}`)
    isConnected = true
    options.onGap()
    const broken = new AbortController()
    client.once('end', () => broken.abort())
    const either = AbortSignal.any([signal, broken.signal])
    while (!either.aborted) {
      await pause(probeMs, either)
      if (!either.aborted) await client.query('/* bus.probe */ select')
    }
    if (!signal.aborted) throw new Error('Connection terminated')
  }

  async function run(signal: AbortSignal): Promise<void> {
    for (let failures = 0; !signal.aborted; failures++) {
      const client = new pg.Client({ ...connectionOptions(options.url), query_timeout: probeMs })
      client.on('error', () => {})
      client.on('notification', ({ channel, payload = '' }) => options.onNews(channel as Channel, payload))
      try {
        await hearOn(client, signal)
      } catch (error) {
        options.onTrouble(describe(error, options.url))
        if (isConnected) failures = 0
      }
      isConnected = false
      drop(client)
      await pause(Math.min(5_000, 50 * 2 ** failures), signal)
    }
  }

  return {
    isConnected: () => isConnected,
    async start() {
      if (running) return
      stopping = new AbortController()
      running = run(stopping.signal)
    },
    async stop() {
      stopping?.abort()
      await running
      running = undefined
    },
  }
}
