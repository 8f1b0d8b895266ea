import { openBarriers } from './barriers.sql.ts'
import type { Ask } from './cell-database.ts'
import { eventually } from './deadline.ts'
import type { Answer, BarrierOrder } from './orders.ts'
import type { Processes } from './processes.ts'

/** How a barrier has to end, whatever breaks, and the job that its last acknowledged arming submits. */
export interface ExpectedBarrier {
  /** Only `fired` has a continuation. Only for `marked` is the owner asked to mark the execution failed. */
  ending: 'fired' | 'aborted' | 'closed' | 'marked' | 'removed'
  job: string
}

/** A barrier of a scenario. */
export type ScenarioBarrier = Omit<BarrierOrder, 'do'> & { ending: ExpectedBarrier['ending'] }

/** The barriers of a cell, moved by its submitter. An order whose response is lost is repeated: each can be carried out twice. */
export class Barriers {
  readonly #processes: Processes
  readonly #ask: Ask
  readonly #expected = new Map<string, ExpectedBarrier>()

  constructor(processes: Processes, ask: Ask) {
    this.#processes = processes
    this.#ask = ask
  }

  get expected(): ReadonlyMap<string, ExpectedBarrier> {
    return this.#expected
  }

  /** Opens a barrier, or arms it again. */
  async open({ ending, ...barrier }: ScenarioBarrier): Promise<void> {
    const [job] = valuesOf(await this.#processes.order({ do: 'open', ...barrier }), barrier.id)
    this.#expected.set(barrier.id, { ending, job: job as string })
  }

  /** Lets parts arrive, all at once. */
  async arrive(id: string, parts: number[]): Promise<void> {
    const arrivals = valuesOf(await this.#processes.order({ do: 'arrive', id, parts }), id)
    if (arrivals.includes('abandoned'))
      throw new Error(`A part of barrier ${id} was abandoned, although the barrier is open.`)
  }

  /** Lets a part arrive at a barrier that is over. */
  async arriveLate(id: string, part: number): Promise<void> {
    const [arrival] = valuesOf(await this.#processes.order({ do: 'arrive', id, parts: [part] }), id)
    if (arrival !== 'abandoned')
      throw new Error(`A part that arrived at barrier ${id} after its end got the answer ${arrival}.`)
  }

  async abort(id: string): Promise<void> {
    const [ending] = valuesOf(await this.#processes.order({ do: 'abort', id }), id)
    // gone: an earlier try whose response was lost has removed it
    if (ending === 'fired') throw new Error(`The barrier ${id} had fired before it was aborted.`)
  }

  async read(id: string): Promise<void> {
    valuesOf(await this.#processes.order({ do: 'read-barrier', id }), id)
  }

  /** Waits until these barriers have fired or expired. */
  async untilOver(ids: string[], ms: number): Promise<void> {
    const areOver = async () => !(await this.#ask(openBarriers, {})).some(({ id }) => ids.includes(id))
    await eventually(areOver, { ms, what: `these barriers had ended: ${ids.join(', ')}` })
  }
}

function valuesOf(answer: Answer, id: string): string[] {
  if (answer.isDone) return answer.values
  throw new Error(`An order about the barrier ${id} was refused: ${answer.message}`)
}
