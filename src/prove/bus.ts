import { type CursorRow, cellDeliveries, cursors, parkedEvents, unplannedEvents, wantedEvents } from './bus.sql.ts'
import type { BusEvidence } from './bus-check.ts'
import type { Ask } from './cell-database.ts'
import { eventually } from './deadline.ts'
import type { BusOrder } from './orders.ts'
import type { Processes } from './processes.ts'
import { proverGroup } from './reader.ts'
import { WebhookReceiver } from './webhook-receiver.ts'

/** The event readers and the webhooks of a cell. */
export class Bus {
  readonly #processes: Processes
  readonly #ask: Ask
  #receiver: WebhookReceiver | undefined

  constructor(processes: Processes, ask: Ask) {
    this.#processes = processes
    this.#ask = ask
  }

  /** Where webhooks go; undefined in a scenario without any. */
  get receiver(): WebhookReceiver | undefined {
    return this.#receiver
  }

  async startReceiver(): Promise<WebhookReceiver> {
    this.#receiver = new WebhookReceiver()
    await this.#receiver.start()
    return this.#receiver
  }

  /** Has the submitter carry out an order about events or webhooks. */
  async order(order: BusOrder): Promise<string[]> {
    const answer = await this.#processes.order(order)
    if (answer.isDone) return answer.values
    throw new Error(`The order ${order.do} was refused: ${answer.message}`)
  }

  cursors(): Promise<CursorRow[]> {
    return this.#ask(cursors, {})
  }

  /** Waits until every group has read everything, every cursor has a reader, and nothing is left to send. */
  async untilQuiet(ms: number): Promise<void> {
    let left: string[] = []
    await eventually(
      async () => {
        left = await this.#unfinished()
        return left.length === 0
      },
      { ms, what: 'all events were handled and sent', everyMs: 50 },
    ).catch((error: Error) => {
      throw new Error(`${error.message} Still open: ${left.slice(0, 5).join('; ')} (${left.length} in all).`)
    })
  }

  async evidence(): Promise<BusEvidence> {
    const { handlings, killed } = this.#processes
    return {
      wanted: await this.#ask(wantedEvents, { group: proverGroup }),
      parked: await this.#ask(parkedEvents, { group: proverGroup }),
      deliveries: await this.#ask(cellDeliveries, {}),
      unplanned: await this.#ask(unplannedEvents, {}),
      handlings,
      receipts: this.#receiver?.receipts ?? [],
      killed,
    }
  }

  async close(): Promise<void> {
    await this.#receiver?.stop()
  }

  /** What is left to read, replay or send. */
  async #unfinished(): Promise<string[]> {
    const [all, parked, deliveries, unplanned] = await Promise.all([
      this.#ask(cursors, {}),
      this.#ask(parkedEvents, { group: proverGroup }),
      this.#ask(cellDeliveries, {}),
      this.#ask(unplannedEvents, {}),
    ])
    const pending = deliveries.filter(({ state }) => state === 'pending')
    return [
      ...all
        .filter(({ behind, pid }) => behind > 0 || pid === null)
        .map((one) => `the cursor ${one.group_name}/${one.partition} is ${one.behind} behind, read by ${one.pid}`),
      ...parked.filter(({ is_due }) => is_due).map(({ seq }) => `the parked event ${seq} is to be replayed`),
      ...pending.map(({ id, error }) => `delivery ${id} is pending (${error})`),
      ...unplanned.map(({ seq, wanted_by }) => `the event ${seq} is wanted by ${wanted_by}`),
    ]
  }
}
