import { announces, leadsTo } from '../job/machine.ts'
import { mustBeObject, placeOf } from '../job/validate-argument.ts'
import type { Runner } from '../postgres/store.ts'
import { type TallyRow, tallyEvents } from './throughput.sql.ts'

/** How much has happened since an earlier call. */
export interface Throughput {
  /** The end of the log, and the time by the database clock. */
  seq: number
  at: Date
  /** How many jobs were submitted, ended with a result, and failed. If there are too many events to count, these are estimates. */
  submitted: number
  finished: number
  failed: number
}

const mostCounted = 50_000

/** Counts events since an earlier call. Events that commit late may be missed: good enough for a rate, not for billing. */
export async function throughputOf(store: Runner, since: Throughput | undefined): Promise<Throughput> {
  if (since !== undefined) mustBeObject('throughput since', since)
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
