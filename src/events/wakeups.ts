import { listen } from '../bus/bus.ts'

/** Hears that events were written, for all readers of a process, on one connection. */
export interface Wakeups {
  /** Begins to tell; the answer ends it. The connection lives as long as somebody listens. */
  hear(onNews: () => void): () => Promise<void>
}

/** What wake-ups need. Through a transaction pooler nothing can be heard, and readers poll. */
export interface WakeupParts {
  url: string
  isPooled: boolean
  onTrouble: (error: unknown) => void
}

/** Makes the wake-ups of a process. */
export function makeWakeups({ url, isPooled, onTrouble }: WakeupParts): Wakeups {
  const listeners = new Set<() => void>()
  const tell = () => {
    for (const listener of listeners) listener()
  }
  const bus = listen({ url, channels: ['holdfast_event'], onNews: tell, onGap: tell, onTrouble })
  return {
    hear(onNews) {
      listeners.add(onNews)
      if (!isPooled) void bus.start()
      return async () => {
        listeners.delete(onNews)
        if (listeners.size > 0) return
        await bus.stop()
        // whoever began to listen while the connection was closed found it open, and would be deaf
        if (listeners.size > 0) void bus.start()
      }
    },
  }
}
