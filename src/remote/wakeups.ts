import { listen } from '../bus/bus.ts'
import { pause } from '../service/service.ts'

/** A waiting claim, in line with others that wait for the same jobs. The first in line polls for all of them. */
export interface Waiter {
  isFirst(): boolean
  /** Waits that long, or until a wake-up after that count. Only the first in line is woken. */
  wait(since: number, ms: number, signal: AbortSignal): Promise<void>
  /** Leaves the line, and wakes the next: if this one has found a job, there may be more. */
  leave(): void
}

/** Wakes the claims that wait in this process. They share one connection. */
export interface Wakes {
  /** The number of wake-ups so far. Read it before a poll, so that a wake-up during the poll is not missed. */
  count(): number
  /** Joins the line of claims that wait for the same jobs. */
  join(same: string): Waiter
  isConnected(): boolean
  stop(): Promise<void>
}

/** Makes the wake-ups of a process. It connects when a claim waits for the first time. */
export function makeWakes(options: { url: string; isPooled: boolean; onError: (error: unknown) => void }): Wakes {
  const lines = new Map<string, Set<{ wake: () => void }>>()
  let count = 0
  let isStopped = false

  function wakeFirst(same: string): void {
    const [first] = lines.get(same) ?? []
    first?.wake()
  }

  function wakeAll(): void {
    count += 1
    for (const same of lines.keys()) wakeFirst(same)
  }

  const bus = listen({
    url: options.url,
    channels: ['holdfast_wake'],
    onNews: wakeAll,
    onGap: wakeAll,
    onError: options.onError,
  })

  function join(same: string): Waiter {
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
    isConnected: () => bus.isConnected(),
    async stop() {
      isStopped = true
      await bus.stop()
    },
  }
}
