import { HoldfastError } from '../errors/errors.ts'
import type { Service } from '../service/service.ts'

/** The services that an engine has started and that are still running. */
export class Running {
  readonly #services = new Set<Service>()
  #isStopped = false

  get size(): number {
    return this.#services.size
  }

  /** Starts a service, and returns the function that stops it. */
  async begin(service: Service): Promise<() => Promise<void>> {
    if (this.#isStopped) throw new HoldfastError('not_running', 'This Holdfast instance is closed.')
    // added before it starts, so that a close during its start stops it too
    this.#services.add(service)
    const stop = () => service.stop().finally(() => this.#services.delete(service))
    try {
      await service.start()
      return stop
    } catch (error) {
      await stop()
      throw error
    }
  }

  /** Stops all services. None can be started any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all([...this.#services].map((service) => service.stop()))
    this.#services.clear()
  }
}
