import { HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'

/** Whatever an engine has begun and nobody has stopped yet. */
export interface Running {
  /** Starts a service, and remembers it until it is stopped. */
  begin<S extends Service>(service: S): Promise<S>
  /** Stops all of them; nothing can be begun any more. */
  stop(): Promise<void>
  readonly size: number
}

/** Makes what remembers the services of an engine. */
export function makeRunning(): Running {
  const running = new Set<Service>()
  let isStopped = false
  return {
    async begin(given) {
      if (isStopped) throw new HoldfastError('not_running', 'This Holdfast was closed.')
      const service = { ...given, stop: () => given.stop().finally(() => running.delete(service)) }
      // remembered before it runs, so that a close in the middle of its start stops it too
      running.add(service)
      try {
        await service.start()
        return service
      } catch (error) {
        await service.stop()
        throw error
      }
    },
    async stop() {
      isStopped = true
      await Promise.all([...running].map((service) => service.stop()))
    },
    get size() {
      return running.size
    },
  }
}
