import { forgetReaders } from '../events/group.sql.ts'
import { dropPartitions, layPartitions } from '../events/groups.sql.ts'
import type { Duty, Note } from './duties.ts'
import { report } from './report.ts'

/** How long the log is kept: so long if every group has read it, and at the most so long whoever has not. */
export interface Retention {
  retentionMs: number
  capMs: number
}

const day = 86_400_000
/** Into how many partitions the time of retention is cut: what is dropped is at most that share older than it must be. */
const slices = 10

/** The duties of the log. They change tables, and wait for locks: they run beside the sweep, never in it. */
export function logDuties({ retentionMs, capMs }: Retention): Duty[] {
  const spanMs = Math.max(3_600_000, retentionMs / slices)
  return [
    {
      name: 'layLog',
      everyMs: 60_000,
      async run(store) {
        await store.run(layPartitions, { spanMs, aheadMs: Math.max(day, spanMs) })
        return report({})
      },
    },
    {
      name: 'dropLog',
      everyMs: 60_000,
      async run(store) {
        const rows = await store.run(dropPartitions, { retentionMs, capMs })
        await store.run(forgetReaders, { olderThanMs: day, limit: 500 })
        return report({ notes: rows.map(noteOf) })
      },
    },
  ]
}

function noteOf({
  name,
  is_dropped,
  unread_by,
}: {
  name: string
  is_dropped: boolean
  unread_by: string[] | null
}): Note {
  const facts = { partition: name, ...(unread_by ? { groups: unread_by } : {}) }
  if (!unread_by)
    return { isError: false, facts, message: 'a partition of the log was dropped; every group has read it' }
  if (!is_dropped)
    return { isError: true, facts, message: 'a partition of the log is due to be dropped, but groups have not read it' }
  return {
    isError: true,
    facts,
    message:
      'a partition of the log reached the cap and was dropped although groups had not read it; these events are lost to them',
  }
}
