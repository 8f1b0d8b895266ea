import { forgetReaders } from '../../events/group.sql.ts'
import { dropPartitions } from '../../events/groups.sql.ts'
import { type Duty, type Note, report } from '../duty.ts'

/** How long the event log is kept. */
export interface Retention {
  /** Once every group has read it. */
  retentionMs: number
  /** At the latest, even if some groups have not read it. */
  capMs: number
}

const day = 86_400_000

/** Drops partitions of the event log whose time is over, and removes readers that are gone. */
export function dropLog({ retentionMs, capMs }: Retention): Duty {
  return {
    name: 'dropLog',
    everyMs: 60_000,
    async run(store) {
      const rows = await store.run(dropPartitions, { retentionMs, capMs })
      await store.run(forgetReaders, { olderThanMs: day, limit: 500 })
      return report({ notes: rows.map(noteOf) })
    },
  }
}

interface DueRow {
  name: string
  is_dropped: boolean
  unread_by: string[] | null
}

function noteOf({ name, is_dropped, unread_by }: DueRow): Note {
  const facts = { partition: name, ...(unread_by ? { groups: unread_by } : {}) }
  if (!unread_by) return { isError: false, facts, message: 'dropped a log partition that every group has read' }
  if (!is_dropped)
    return { isError: true, facts, message: 'a log partition is due to be dropped, but some groups have not read it' }
  return {
    isError: true,
    facts,
    message: 'dropped a log partition at the cap although some groups had not read it; they lose its events',
  }
}
