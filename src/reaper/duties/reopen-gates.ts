import { adoptedAtOnce, startOfJobs } from '../../limits/limits.ts'
import { type Adopted, adoptJobs } from '../../limits/limits.sql.ts'
import type { Runner } from '../../postgres/store.ts'
import { type Duty, type Note, report } from '../duty.ts'
import { collectHints, forgetGates, type GateCursor, reopenClosed } from '../gate.sql.ts'

const batch = 1_000
const everyMs = { look: 10_000, forget: 60_000 }
/** How many steps of a walk one run takes, over jobs of limits that were changed a short while ago. */
const mostSteps = 5
/** How many keys, and how often, hints are collected at once. */
const collected = { keys: 200, times: 10 }
const start: GateCursor = { queue: '', kind: '', key: '' }

/** Sends jobs to gates that they don't wait at yet, opens gates that are closed although they should not be, and removes idle ones. */
export function reopenGates(): Duty {
  const changed = new Walk({ isAll: false })
  const all = new Walk({ isAll: true })
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
      const moved = await changed.run(store, mostSteps, notes)
      const nowMs = performance.now()
      if (nowMs - forgotAtMs >= everyMs.forget) {
        const [gone] = await store.run(forgetGates, { limit: batch })
        // if there are more, the next run goes on
        if ((gone?.count ?? 0) < batch) forgotAtMs = nowMs
      }
      if (nowMs - lookedAtMs < everyMs.look) return report({ notes, isFull: moved > 0 })
      lookedAtMs = nowMs
      await all.run(store, 1, notes)
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
  #cursor = startOfJobs
  #beganMs: number | null = null

  constructor({ isAll }: { isAll: boolean }) {
    this.#isAll = isAll
  }

  /** Goes so many steps, or to the end. Resolves with how many jobs it moved. */
  async run(store: Runner, steps: number, notes: Note[]): Promise<number> {
    let moved = 0
    for (let step = 0; step < steps; step++) {
      const params = { ...this.#cursor, isAll: this.#isAll, most: adoptedAtOnce, beganMs: this.#beganMs }
      const [next] = await store.run(adoptJobs, params)
      moved += next?.moved ?? 0
      if (next && next.failed > 0) notes.push(failedNote(next))
      this.#cursor = next && !next.is_end ? next : startOfJobs
      this.#beganMs = next && !next.is_end ? (this.#beganMs ?? next.now_ms) : null
      if (!next || next.is_end) break
    }
    return moved
  }
}

async function collect(store: Runner): Promise<void> {
  let after = ''
  for (let time = 0; time < collected.times; time++) {
    const [look] = await store.run(collectHints, { after, limit: collected.keys })
    if (!look) return
    after = look.after
  }
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
