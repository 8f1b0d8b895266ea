import { type Adopted, adoptJobs } from '../../limits/limits.sql.ts'
import { startOfJobs } from '../../limits/limits.ts'
import type { Runner } from '../../postgres/store.ts'
import { type Duty, type Note, report } from '../duty.ts'
import { collectHints, forgetGates, type GateCursor, reopenClosed } from '../gate.sql.ts'

const batch = 1_000
const everyMs = { look: 10_000, forget: 60_000 }
/** How many jobs one step of a walk looks at, and of how many gates hints are collected at once. */
const most = { jobs: 5_000, keys: 200 }
/** How long walking may take in one run, and collecting: other duties wait. */
const mostMs = 200
const start: GateCursor = { queue: '', kind: '', key: '' }

/** Sends jobs to gates that they don't wait at yet, opens gates that are closed although they should not be, and removes idle ones. */
export function reopenGates(): Duty {
  const changed = new Walk({ isAll: false, mostMs })
  const all = new Walk({ isAll: true, mostMs: 0 })
  let cursor = start
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let forgotAtMs = Number.NEGATIVE_INFINITY
  const reopen = async (store: Runner): Promise<number> => {
    const [look] = await store.run(reopenClosed, { ...cursor, limit: batch })
    cursor = look && look.looked >= batch ? { queue: look.queue, kind: look.kind, key: look.key } : start
    return look?.opened ?? 0
  }
  return {
    name: 'reopenGates',
    everyMs: 1_000,
    async run(store) {
      const notes: Note[] = []
      const moved = await changed.run(store, notes)
      const nowMs = performance.now()
      if (nowMs - forgotAtMs >= everyMs.forget) {
        const [gone] = await store.run(forgetGates, { limit: batch })
        // if there are more, the next run goes on
        if ((gone?.count ?? 0) < batch) forgotAtMs = nowMs
      }
      if (nowMs - lookedAtMs < everyMs.look) return report({ notes, isFull: moved > 0 })
      lookedAtMs = nowMs
      await all.run(store, notes)
      await collect(store)
      const opened = await reopen(store)
      if (opened > 0) notes.push(openedNote(opened))
      return report({ notes, isFull: moved > 0 })
    },
  }
}

/** A walk over queued jobs that sends those to their gates that don't wait there. */
class Walk {
  readonly #isAll: boolean
  readonly #mostMs: number
  #cursor = startOfJobs
  #beganMs: number | null = null

  constructor({ isAll, mostMs }: { isAll: boolean; mostMs: number }) {
    this.#isAll = isAll
    this.#mostMs = mostMs
  }

  /** Goes one step, and on until its time is over or it is at the end. Resolves with how many jobs it moved. */
  async run(store: Runner, notes: Note[]): Promise<number> {
    const untilMs = performance.now() + this.#mostMs
    let moved = 0
    do {
      const next = await this.#step(store)
      moved += next.moved
      if (next.failed > 0) notes.push(failedNote(next))
      if (next.is_end) break
    } while (performance.now() < untilMs)
    return moved
  }

  async #step(store: Runner): Promise<Adopted> {
    const params = { ...this.#cursor, isAll: this.#isAll, most: most.jobs, beganMs: this.#beganMs }
    const [next] = (await store.run(adoptJobs, params)) as [Adopted]
    this.#cursor = next.is_end ? startOfJobs : next
    this.#beganMs = next.is_end ? null : (this.#beganMs ?? next.now_ms)
    return next
  }
}

async function collect(store: Runner): Promise<void> {
  const untilMs = performance.now() + mostMs
  let after: string | undefined = ''
  while (after !== undefined && performance.now() < untilMs)
    after = (await store.run(collectHints, { after, limit: most.keys }))[0]?.after
}

function openedNote(opened: number): Note {
  return {
    isError: true,
    message: 'opened gates that were closed although slots were free',
    facts: { orphan: 'gate-closed', opened },
  }
}

function failedNote({ failed, problem, queue, kind }: Adopted): Note {
  return {
    isError: true,
    message: 'could not send jobs to the gates of their limit',
    facts: { orphan: 'limit-without-gate', jobs: failed, queue, kind, error: problem },
  }
}
