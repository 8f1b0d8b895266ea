import type { JobId } from '../job/id.ts'
import type { Runner } from '../postgres/store.ts'
import { factsAbout, type SnapshotRow } from './facts.sql.ts'
import type { Facts } from './facts.ts'

/** The facts about a job, now and when its attempts ended badly. */
export interface Reading {
  facts: Facts
  /** The last ones, oldest first. */
  snapshots: SnapshotRow[]
}

const shownSnapshots = 10

/** Reads what every source says about a job; undefined if none knows it. */
export async function readFacts(store: Runner, id: JobId): Promise<Reading | undefined> {
  const [row] = await store.run(factsAbout, { id, shown: shownSnapshots })
  return row && { facts: withoutUnknowns(row.facts), snapshots: row.snapshots }
}

const slotFacts = ['by', 'nextAt', 'bufferedAt', 'pausedAt', 'missed', 'problem', 'isLast', 'isReplaced'] as const

/** The same facts without members that are null because nothing is known. */
function withoutUnknowns(facts: Facts): Facts {
  const { scheduled, ...rest } = facts
  return {
    ...rest,
    ...(scheduled && { scheduled: withoutNulls(scheduled, slotFacts) }),
    kind: facts.kind && withoutNulls(facts.kind, ['names', 'ownQueue']),
    queue: withoutNulls(facts.queue, ['pausedBy', 'reason']),
    session: facts.session && withoutNulls(facts.session, ['exit', 'blockedMs']),
  }
}

function withoutNulls<T extends object>(whole: T, optional: readonly (keyof T & string)[]): T {
  const isKnown = ([name, value]: [string, unknown]) => value !== null || !optional.some((one) => one === name)
  return Object.fromEntries(Object.entries(whole).filter(isKnown)) as T
}
