import { type Duty, type DutyReport, duties } from '#holdfast/reaper/duties'
import { type ReaperNews, runSweep, type Sweep } from '#holdfast/reaper/reaper'
import type { Runner } from '#holdfast/store/store'

/** All that one sweep did and told. */
export interface Swept
  extends Pick<DutyReport, 'revived' | 'quarantined' | 'ended' | 'failed' | 'stranded' | 'healed'> {
  sweep: Sweep
  troubles: { duty: string | undefined; message: string }[]
}

/** Runs one sweep with these duties, by default all of them. */
export async function sweepOf(store: Runner, due: readonly Duty[] = duties): Promise<Swept> {
  const reports: DutyReport[] = []
  const troubles: Swept['troubles'] = []
  const news: ReaperNews = {
    elected() {},
    deposed() {},
    swept() {},
    done: (_duty, report) => void reports.push(report),
    trouble: (error, duty) => void troubles.push({ duty, message: String(error) }),
  }
  const sweep = await runSweep(store, due, news, () => true)
  return {
    sweep,
    troubles,
    revived: reports.flatMap(({ revived }) => revived),
    quarantined: reports.flatMap(({ quarantined }) => quarantined),
    ended: reports.flatMap(({ ended }) => ended),
    failed: reports.flatMap(({ failed }) => failed),
    healed: reports.flatMap(({ healed }) => healed),
    stranded: reports.flatMap(({ stranded }) => stranded),
  }
}
