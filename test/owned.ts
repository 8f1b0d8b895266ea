import { defineJob, type OpenBarrier } from 'holdfast'
import { type Duty, type DutyReport, duties } from '#holdfast/reaper/duties'
import { type ReaperNews, runSweep, type Sweep } from '#holdfast/reaper/reaper'
import type { Runner } from '#holdfast/store/store'

/** What barriers of the tests submit when they fire. */
export const after = defineJob('after', { run: ({ input }) => ({ input }) })

/** What every barrier of the tests has, unless it says otherwise. */
export const plain = { parts: ['a', 'b'], continuation: { job: after, input: { n: 1 } } } satisfies Omit<
  OpenBarrier<typeof after>,
  'id'
>

type Query = <Row = Record<string, unknown>>(text: string, values?: unknown[]) => Promise<Row[]>

/** Lets a barrier have expired a second ago. */
export async function expire(query: Query, id: string): Promise<void> {
  const past = `now() - interval '1 s'`
  await query(`update holdfast.owned_barrier set expires_at = ${past}, due_at = ${past} where id = $1`, [id])
}

/** Lets all parts have arrived without anybody noticing, as a restored backup may. */
export async function drain(query: Query, id: string, arrived: number): Promise<void> {
  await query('update holdfast.owned_part set arrived_at = now() where barrier_id = $1 and arrived_at is null', [id])
  await query('update holdfast.owned_barrier set arrived = $2 where id = $1', [id, arrived])
}

/** How many continuations there are, whatever became of them. */
export async function firings(query: Query): Promise<number> {
  const told = `select count(*)::int as count from holdfast.event where type = 'job.submitted' and kind = 'after'`
  return (await query<{ count: number }>(told))[0]?.count as number
}

/** All that one sweep did to barriers. */
export interface Swept extends Pick<DutyReport, 'healed' | 'skipped' | 'failed'> {
  sweep: Sweep
  troubles: string[]
}

/** Runs one sweep with these duties, by default all that the sweep has. */
export async function sweepOwned(store: Runner, due: readonly Duty[] = duties): Promise<Swept> {
  const reports: DutyReport[] = []
  const troubles: string[] = []
  const news: ReaperNews = {
    elected() {},
    deposed() {},
    swept() {},
    done: (_duty, report) => void reports.push(report),
    trouble: (error) => void troubles.push(String(error)),
  }
  const sweep = await runSweep(store, due, news, () => true)
  return {
    sweep,
    troubles,
    healed: reports.flatMap(({ healed }) => healed),
    skipped: reports.flatMap(({ skipped }) => skipped),
    failed: reports.flatMap(({ failed }) => failed),
  }
}
