import type { Statement } from '../store/sql.ts'
import { openBarriers } from './barriers.sql.ts'
import type { Crew } from './crew.ts'
import { eventually } from './deadline.ts'
import type { Answer, BarrierOrder } from './orders.ts'

/** How a barrier has to end, whatever is broken, and the job of its last acknowledged arming. */
export interface Promised {
  /** Only `fired` has a continuation; only `marked` is told to its owner. */
  ending: 'fired' | 'aborted' | 'closed' | 'marked' | 'removed'
  job: string
}

/** A barrier of a scenario. */
export type Wanted = Omit<BarrierOrder, 'do'> & { ending: Promised['ending'] }

/** The barriers of a cell, moved by its submitter. An order whose answer is lost is repeated: each may be given twice. */
export interface CaseBarriers {
  readonly promised: ReadonlyMap<string, Promised>
  /** Opens a barrier, or arms it again. */
  open(barrier: Wanted): Promise<void>
  /** Lets parts arrive, all at once. */
  arrive(id: string, parts: number[]): Promise<void>
  /** Lets a part arrive at a barrier that takes none any more. */
  arriveLate(id: string, part: number): Promise<void>
  abort(id: string): Promise<void>
  look(id: string): Promise<void>
  /** Waits until these barriers cannot move any more. */
  untilOver(ids: string[], ms: number): Promise<void>
}

/** Makes the barriers of a cell. */
export function makeCaseBarriers(
  crew: Crew,
  ask: <P, Row>(statement: Statement<P, Row>, params: P) => Promise<Row[]>,
): CaseBarriers {
  const promised = new Map<string, Promised>()
  return {
    promised,
    async open({ ending, ...barrier }) {
      const [job] = saidIn(await crew.order({ do: 'open', ...barrier }), barrier.id)
      promised.set(barrier.id, { ending, job: job as string })
    },
    async arrive(id, parts) {
      const said = saidIn(await crew.order({ do: 'arrive', id, parts }), id)
      if (said.includes('abandoned')) throw new Error(`A part of the barrier ${id} was abandoned, though it is open.`)
    },
    async arriveLate(id, part) {
      const [said] = saidIn(await crew.order({ do: 'arrive', id, parts: [part] }), id)
      if (said !== 'abandoned') throw new Error(`A part of the barrier ${id}, which is over, was answered ${said}.`)
    },
    async abort(id) {
      const [said] = saidIn(await crew.order({ do: 'abort', id }), id)
      // gone: an earlier try whose answer was lost has removed it
      if (said === 'fired') throw new Error(`The barrier ${id} had fired before it was aborted.`)
    },
    async look(id) {
      saidIn(await crew.order({ do: 'look-at-barrier', id }), id)
    },
    async untilOver(ids, ms) {
      const what = `these barriers were over: ${ids.join(', ')}`
      await eventually(async () => !(await ask(openBarriers, {})).some(({ id }) => ids.includes(id)), { ms, what })
    },
  }
}

function saidIn(answer: Answer, id: string): string[] {
  if (answer.isDone) return answer.said
  throw new Error(`An order about the barrier ${id} was refused: ${answer.message}`)
}
