import { listen } from '../bus/bus.ts'
import { pause } from '../service/service.ts'

/** Wakes the claims that wait in this process, on one connection for all of them. */
export interface Wakes {
  /** How often there was news: whoever looks for work asks before, so that nothing that comes meanwhile is missed. */
  count(): number
  /** Waits for news that came after that count, at most so long. Of those who wait for the same, news wakes the first. */
  wait(same: string, since: number, ms: number, signal: AbortSignal): Promise<void>
  /** Whoever was woken has found work, and there may be more: wakes the next who waits for the same. */
  next(same: string): void
  isConnected(): boolean
  stop(): Promise<void>
}

/** Makes the wakes of a process. The connection is made when somebody waits for the first time. */
export function makeWakes(options: { url: string; isPooled: boolean; onTrouble: (error: unknown) => void }): Wakes {
  const waiting = new Map<string, Set<() => void>>()
  let count = 0
  let isStopped = false

  function next(same: string): void {
    const [first] = waiting.get(same) ?? []
    first?.()
  }

  function tell(): void {
    count += 1
    for (const same of waiting.keys()) next(same)
  }

  const bus = listen({
    url: options.url,
    channels: ['holdfast_wake'],
    onNews: tell,
    onGap: tell,
    onTrouble: options.onTrouble,
  })

  return {
    count: () => count,
    next,
    isConnected: bus.isConnected,
    async wait(same, since, ms, signal) {
      if (!options.isPooled && !isStopped) void bus.start()
      if (count !== since) return
      const woken = new AbortController()
      const wake = () => leave(waiting, same, wake) && woken.abort()
      const others = waiting.get(same) ?? new Set()
      waiting.set(same, others.add(wake))
      await pause(ms, AbortSignal.any([signal, woken.signal]))
      leave(waiting, same, wake)
    },
    async stop() {
      isStopped = true
      await bus.stop()
    },
  }
}

function leave(waiting: Map<string, Set<() => void>>, same: string, wake: () => void): true {
  const others = waiting.get(same)
  others?.delete(wake)
  if (others?.size === 0) waiting.delete(same)
  return true
}
