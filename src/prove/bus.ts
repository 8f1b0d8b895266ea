import type { Statement } from '../store/sql.ts'
import { asideEvents, type CursorRow, cursors, sentDeliveries, unplannedEvents, wantedEvents } from './bus.sql.ts'
import type { BusEvidence } from './bus-check.ts'
import type { Crew } from './crew.ts'
import { eventually } from './deadline.ts'
import type { BusOrder } from './orders.ts'
import { proverGroup } from './reading.ts'
import { openReceiver, type Receiver } from './receiver.ts'

/** The readers and the webhooks of a cell. */
export interface CaseBus {
  /** Where its webhooks go; undefined until somebody asks for it. */
  readonly receiver: Receiver | undefined
  open(): Promise<Receiver>
  /** Has the submitter do something about events or webhooks. */
  order(order: BusOrder): Promise<string[]>
  cursors(): Promise<CursorRow[]>
  /** Waits until every group has read everything, every cursor is read from, and nothing is left to be sent. */
  untilQuiet(ms: number): Promise<void>
  evidence(): Promise<BusEvidence>
  close(): Promise<void>
}

type Ask = <P, Row>(statement: Statement<P, Row>, params: P) => Promise<Row[]>

/** Makes the bus of a cell. */
export function makeCaseBus(crew: Crew, ask: Ask): CaseBus {
  let receiver: Receiver | undefined

  /** What keeps the bus from being quiet. */
  async function unrest(): Promise<string[]> {
    const [all, aside, sent, unplanned] = await Promise.all([
      ask(cursors, {}),
      ask(asideEvents, { group: proverGroup }),
      ask(sentDeliveries, {}),
      ask(unplannedEvents, {}),
    ])
    return [
      ...all
        .filter(({ behind, pid }) => behind > 0 || pid === null)
        .map((one) => `the cursor ${one.group_name}/${one.partition} is ${one.behind} behind, read by ${one.pid}`),
      ...aside.filter(({ is_due }) => is_due).map(({ seq }) => `the parked event ${seq} is to be replayed`),
      ...sent.filter(({ state }) => state === 'pending').map(({ id, error }) => `delivery ${id} is pending (${error})`),
      ...unplanned.map(({ seq, wanted_by }) => `the event ${seq} is wanted by ${wanted_by}`),
    ]
  }

  return {
    get receiver() {
      return receiver
    },
    async open() {
      receiver ??= await openReceiver()
      return receiver
    },
    async order(order) {
      const answer = await crew.order(order)
      if (answer.isDone) return answer.said
      throw new Error(`The order ${order.do} was refused: ${answer.message}`)
    },
    cursors: () => ask(cursors, {}),
    async untilQuiet(ms) {
      let left: string[] = []
      await eventually(
        async () => {
          left = await unrest()
          return left.length === 0
        },
        { ms, what: 'all events were handled and sent', everyMs: 50 },
      ).catch((error: Error) => {
        throw new Error(`${error.message} Still open: ${left.slice(0, 5).join('; ')} (${left.length} in all).`)
      })
    },
    async evidence() {
      return {
        wanted: await ask(wantedEvents, { group: proverGroup }),
        aside: await ask(asideEvents, { group: proverGroup }),
        sent: await ask(sentDeliveries, {}),
        unplanned: await ask(unplannedEvents, {}),
        handlings: crew.handlings,
        receipts: receiver?.receipts ?? [],
        killed: crew.killed,
      }
    },
    close: async () => receiver?.close(),
  }
}
