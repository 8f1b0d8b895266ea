import { listen } from '../bus/bus.ts'

/** Wakes the readers of a process when events are written. They share one connection. */
export interface Wakeups {
  /** Calls `onNews` for each wake-up, until the returned function is called. The connection is open as long as there are listeners. */
  hear(onNews: () => void): () => Promise<void>
}

/** What wake-ups need. A transaction pooler delivers none, so readers poll. */
export interface WakeupParts {
  url: string
  isPooled: boolean
  onError: (error: unknown) => void
}

/** Makes the wake-ups of a process. */
export function makeWakeups({ url, isPooled, onError }: WakeupParts): Wakeups {
  const listeners = new Set<() => void>()
  const tell = () => {
    for (const listener of listeners) listener()
  }
  const bus = listen({ url, channels: ['holdfast_event'], onNews: tell, onGap: tell, onError })
  return {
    hear(onNews) {
      listeners.add(onNews)
      if (!isPooled) void bus.start()
      return async () => {
        listeners.delete(onNews)
        if (listeners.size > 0) return
        await bus.stop()
        // a listener that came while the connection was closing found it open, and would never be woken
        if (listeners.size > 0) void bus.start()
      }
    },
  }
}
