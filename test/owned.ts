import { defineJob, type OpenBarrier } from 'holdfast'
import type { Runner } from '#holdfast/postgres/store'
import { duties } from '#holdfast/reaper/duties'
import type { Duty, DutyReport } from '#holdfast/reaper/duty'
import { type ReaperObserver, runSweep, type Sweep } from '#holdfast/reaper/reaper'

/** The continuation of the barriers in tests. */
export const after = defineJob('after', { run: ({ input }) => ({ input }) })

/** The defaults of a barrier in tests. */
export const plain = { parts: ['a', 'b'], continuation: { job: after, input: { n: 1 } } } satisfies Omit<
  OpenBarrier<typeof after>,
  'id'
>

type Query = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>

/** Makes a barrier expire a second ago. */
export async function expire(query: Query, id: string): Promise<void> {
  const past = `now() - interval '1 s'`
  await query(`update holdfast.owned_barrier set expires_at = ${past}, due_at = ${past} where id = $1`, [id])
}

/** Marks all parts as arrived without firing, as in a restored backup. */
export async function drain(query: Query, id: string, arrived: number): Promise<void> {
  await query('update holdfast.owned_part set arrived_at = now() where barrier_id = $1 and arrived_at is null', [id])
  await query('update holdfast.owned_barrier set arrived = $2 where id = $1', [id, arrived])
}

/** How many continuations were submitted. */
export async function firings(query: Query): Promise<number> {
  const told = `select count(*)::int as count from holdfast.event where type = 'job.submitted' and kind = 'after'`
  return (await query<{ count: number }>(told))[0]?.count as number
}

/** What one sweep did to barriers. */
export interface Swept extends Pick<DutyReport, 'healed' | 'skipped' | 'failed'> {
  sweep: Sweep
  problems: string[]
}

/** Runs one sweep with these duties; by default, all of them. */
export async function sweepOwned(store: Runner, due: readonly Duty[] = duties): Promise<Swept> {
  const reports: DutyReport[] = []
  const problems: string[] = []
  const observer: ReaperObserver = {
    elected() {},
    deposed() {},
    swept() {},
    done: (_duty, report) => void reports.push(report),
    onError: (error) => void problems.push(String(error)),
  }
  const sweep = await runSweep(store, due, observer, () => true)
  return {
    sweep,
    problems,
    healed: reports.flatMap(({ healed }) => healed),
    skipped: reports.flatMap(({ skipped }) => skipped),
    failed: reports.flatMap(({ failed }) => failed),
  }
}
