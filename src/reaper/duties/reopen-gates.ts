import { adoptJobs } from '../../limits/limits.sql.ts'
import { type Duty, report } from '../duty.ts'
import { forgetGates, type GateCursor, reopenClosed } from '../gate.sql.ts'

const batch = 1_000
const adopted = 10_000
const everyMs = { reopen: 10_000, forget: 60_000 }
const start: GateCursor = { queue: '', kind: '', key: '' }

/** Sends jobs to gates that they don't wait at yet, opens gates that are closed although they should not be, and removes idle ones. */
export function reopenGates(): Duty {
  let cursor = start
  let reopenedAtMs = Number.NEGATIVE_INFINITY
  let forgotAtMs = Number.NEGATIVE_INFINITY
  return {
    name: 'reopenGates',
    everyMs: 1_000,
    async run(store) {
      const [moved] = await store.run(adoptJobs, { most: adopted })
      const nowMs = performance.now()
      if (nowMs - reopenedAtMs >= everyMs.reopen) {
        reopenedAtMs = nowMs
        const [look] = await store.run(reopenClosed, { ...cursor, limit: batch })
        cursor = look && look.looked >= batch ? { queue: look.queue, kind: look.kind, key: look.key } : start
        if (look && look.opened > 0) return report({ notes: [noteOf(look.opened)] })
      }
      if (nowMs - forgotAtMs >= everyMs.forget) {
        forgotAtMs = nowMs
        await store.run(forgetGates, { limit: batch })
      }
      return report({ isFull: (moved?.moved ?? 0) >= adopted })
    },
  }
}

function noteOf(opened: number) {
  return {
    isError: true,
    message: 'opened gates that were closed although slots were free',
    facts: { orphan: 'gate-closed', opened },
  }
}
