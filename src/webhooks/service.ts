import { type Loop, loop, type Service } from '../service/service.ts'
import { isWanted, makePlanner, type PlannerParts } from './planner.ts'
import { Sender, type SenderParts } from './sender.ts'

/** What planning and sending need. */
export type WebhookServiceParts = Omit<PlannerParts, 'onPlanned' | 'onError'> & SenderParts

/** The webhooks of one process: it only polls until the first webhook is wanted, and then runs a planner and a sender. */
export class WebhookService implements Service {
  readonly #parts: WebhookServiceParts
  readonly #sender: Sender
  readonly #planner: Service
  readonly #waiting: Loop

  constructor(parts: WebhookServiceParts) {
    const { onError } = parts.observer
    this.#parts = parts
    this.#sender = new Sender(parts)
    this.#planner = makePlanner({ ...parts, onPlanned: () => this.#sender.wake(), onError })
    this.#waiting = loop({ turn: () => this.#startIfWanted(), onError })
  }

  start(): Promise<void> {
    return this.#waiting.start()
  }

  async stop(): Promise<void> {
    await this.#waiting.stop()
    // the planner first: other processes can still send what it planned last
    await this.#planner.stop()
    await this.#sender.stop()
  }

  /** The first webhook may be wanted. */
  wake(): void {
    this.#waiting.wake()
  }

  async #startIfWanted(): Promise<number> {
    if (!(await isWanted(this.#parts.store))) return this.#parts.pollMs
    await this.#sender.start()
    await this.#planner.start()
    // not awaited: a loop that stops waits for its current turn, which is this one
    void this.#waiting.stop()
    return 0
  }
}
