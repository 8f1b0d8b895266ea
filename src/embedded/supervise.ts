import { messageOf } from '../errors/errors.ts'
import { pause } from '../service/service.ts'
import type { Keeper } from './launch.ts'

const windowMs = 60_000
const restartsPerWindow = 5
const retryMs = 250

/** Keeps a server running until it is stopped. */
export interface Supervision {
  stop(): Promise<void>
}

/**
 * Restarts the server whenever its keeper exits unexpectedly, on the same port, so that clients only have to reconnect. It never gives up,
 * because a full disk may be freed, but it limits the restarts per minute.
 */
export function supervise(
  first: Keeper,
  options: { restart: () => Promise<Keeper>; log: (line: string) => void },
): Supervision {
  const stopping = new AbortController()
  const restartedAt: number[] = []
  let keeper: Keeper | undefined = first

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      await keeper?.exited
      if (stopping.signal.aborted) return
      if (keeper) options.log(`The embedded Postgres (process ${keeper.serverPid}) exited unexpectedly; restarting it.`)
      if (!keeper) await pause(retryMs, stopping.signal)
      const excessMs = waitMs(restartedAt)
      if (excessMs > 0)
        options.log(`It was restarted ${restartsPerWindow} times in a minute; pausing ${seconds(excessMs)}.`)
      await pause(excessMs, stopping.signal)
      if (stopping.signal.aborted) return
      restartedAt.push(performance.now())
      keeper = await options.restart().catch((error: unknown) => {
        options.log(`The embedded Postgres could not be restarted: ${messageOf(error)}`)
        return undefined
      })
    }
  }

  const watching = watch()
  return {
    stop: async () => {
      stopping.abort()
      await keeper?.stop()
      await watching
      await keeper?.stop() // one that was just being restarted
    },
  }
}

function waitMs(restartedAt: number[]): number {
  const oldest = restartedAt.at(-restartsPerWindow)
  return oldest === undefined ? 0 : Math.max(0, oldest + windowMs - performance.now())
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`
}
