import { announces, leadsTo } from '../job/machine.ts'
import type { Runner } from '../store/store.ts'
import { mustBeObject, placeOf } from './given.ts'
import { type TallyRow, tallyEvents } from './pulse.sql.ts'

/** How much has happened since an earlier pulse. */
export interface Pulse {
  /** The end of the log at that moment, and the moment by the clock of the database. */
  seq: number
  at: Date
  /** How many jobs were submitted, ended with a result, and failed. Where far too much has happened to count, it is estimated. */
  submitted: number
  finished: number
  failed: number
}

const mostCounted = 50_000

/** Counts what the log tells since an earlier pulse. Events that commit late may be missed: good for a rate, not for a bill. */
export async function pulseOf(store: Runner, since: Pulse | undefined): Promise<Pulse> {
  if (since !== undefined) mustBeObject('pulse before', since)
  const after = since === undefined ? null : placeOf('seq', since.seq)
  const [row] = await store.run(tallyEvents, { after, most: mostCounted })
  const { top, at, counts } = row as TallyRow
  const seen = counts.reduce((sum, { count }) => sum + count, 0)
  const scale = seen < mostCounted || after === null ? 1 : Math.max(1, (top - after) / seen)
  const sum = (isMeant: (one: TallyRow['counts'][number]) => boolean) =>
    Math.round(scale * counts.filter(isMeant).reduce((total, { count }) => total + count, 0))
  return {
    seq: top,
    at,
    submitted: sum(({ type }) => type === announces('submit')),
    finished: sum(({ state }) => leadsTo('finish').some((to) => to === state)),
    failed: sum(({ state }) => state === 'failed'),
  }
}
