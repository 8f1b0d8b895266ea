import { listen } from '../bus/bus.ts'
import { pause } from '../service/service.ts'

/** The place of a waiting claim among those that wait for the same. The first of them looks for all: a thousand need not ask. */
export interface Place {
  isFirst(): boolean
  /** Waits for news that came after that count, at most so long. Only the first is woken. */
  wait(since: number, ms: number, signal: AbortSignal): Promise<void>
  /** Lets the next one go first. Whoever leaves may have found something, and there may be more, so that one is woken. */
  leave(): void
}

/** Wakes the claims that wait in this process, on one connection for all of them. */
export interface Wakes {
  /** How often there was news: whoever looks for work asks before, so that nothing that comes meanwhile is missed. */
  count(): number
  join(same: string): Place
  isConnected(): boolean
  stop(): Promise<void>
}

/** Makes the wakes of a process. The connection is made when somebody waits for the first time. */
export function makeWakes(options: { url: string; isPooled: boolean; onTrouble: (error: unknown) => void }): Wakes {
  const lines = new Map<string, Set<{ wake: () => void }>>()
  let count = 0
  let isStopped = false

  function wakeFirst(same: string): void {
    const [first] = lines.get(same) ?? []
    first?.wake()
  }

  function tell(): void {
    count += 1
    for (const same of lines.keys()) wakeFirst(same)
  }

  const bus = listen({
    url: options.url,
    channels: ['holdfast_wake'],
    onNews: tell,
    onGap: tell,
    onTrouble: options.onTrouble,
  })

  function join(same: string): Place {
    const line = lines.get(same) ?? new Set()
    const mine = { wake: () => {} }
    lines.set(same, line.add(mine))
    const isFirst = () => line.values().next().value === mine
    return {
      isFirst,
      async wait(since, ms, signal) {
        if (!options.isPooled && !isStopped) void bus.start()
        if (isFirst() && count !== since) return
        const woken = new AbortController()
        mine.wake = () => woken.abort()
        await pause(ms, AbortSignal.any([signal, woken.signal]))
        mine.wake = () => {}
      },
      leave() {
        line.delete(mine)
        if (line.size > 0) wakeFirst(same)
        else if (lines.get(same) === line) lines.delete(same)
      },
    }
  }

  return {
    count: () => count,
    join,
    isConnected: bus.isConnected,
    async stop() {
      isStopped = true
      await bus.stop()
    },
  }
}
