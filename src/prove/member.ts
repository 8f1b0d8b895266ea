import { fileURLToPath } from 'node:url'
import { pause } from '../service/service.ts'
import { ControlledProcess } from './controlled-process.ts'
import type { Answer, MemberMessage, MemberReport, Order } from './orders.ts'

const program = fileURLToPath(new URL('./child.js', import.meta.url))
const askMs = 25_000

/** A process of a proof, which carries out orders. */
export class Member extends ControlledProcess<MemberMessage> {
  /** Resolves when it is ready for orders, or has ended. */
  readonly ready: Promise<unknown>
  /** Called with everything that it reports by itself. */
  onReport: (report: MemberReport) => void = () => {}
  readonly #pending = new Map<number, (answer: Answer) => void>()
  #lastId = 0

  constructor() {
    super(program)
    const started = new Promise<void>((resolve) => {
      this.onMessage = (message) => {
        if ('isReady' in message) resolve()
        else if ('answer' in message) this.#pending.get(message.id)?.(message.answer)
        else this.onReport(message)
      }
    })
    const ended = this.exited.then(({ code, signal }) => {
      for (const answer of this.#pending.values())
        answer(unavailable(`the process ended (${signal ?? `code ${code}`})`))
    })
    this.ready = Promise.race([started, ended])
  }

  /** Has it carry out an order. Never rejects: a process that ends before it answers is an answer, too. */
  async ask(order: Order, withinMs = askMs): Promise<Answer> {
    if (this.hasExited) return unavailable('the process has ended')
    this.#lastId += 1
    const id = this.#lastId
    const over = new AbortController()
    const answered = new Promise<Answer>((resolve) => this.#pending.set(id, resolve))
    this.send({ id, order })
    try {
      return await Promise.race([answered, pause(withinMs, over.signal).then(() => late(order, withinMs))])
    } finally {
      over.abort()
      this.#pending.delete(id)
    }
  }
}

function unavailable(message: string): Answer {
  return { isDone: false, code: 'not_running', message, isConnectionError: true }
}

function late(order: Order, withinMs: number): Answer {
  const message = `The process did not answer ${order.do} within ${withinMs} ms.`
  return { isDone: false, code: 'unexpected', message, isConnectionError: false }
}
