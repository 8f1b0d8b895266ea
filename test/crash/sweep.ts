import type { Runner } from '#holdfast/postgres/store'
import { duties } from '#holdfast/reaper/duties'
import type { Duty, DutyReport } from '#holdfast/reaper/duty'
import { type ReaperObserver, runSweep, type Sweep } from '#holdfast/reaper/reaper'

/** What one sweep did and reported. */
export interface Swept
  extends Pick<DutyReport, 'revived' | 'quarantined' | 'ended' | 'failed' | 'stranded' | 'healed' | 'notes'> {
  sweep: Sweep
  problems: { duty: string | undefined; message: string }[]
}

/** Runs one sweep with these duties; by default, all of them. */
export async function sweepOf(store: Runner, due: readonly Duty[] = duties): Promise<Swept> {
  const reports: DutyReport[] = []
  const problems: Swept['problems'] = []
  const observer: ReaperObserver = {
    elected() {},
    deposed() {},
    swept() {},
    done: (_duty, report) => void reports.push(report),
    onError: (error, duty) => void problems.push({ duty, message: String(error) }),
  }
  const sweep = await runSweep(store, due, observer, () => true)
  return {
    sweep,
    problems,
    revived: reports.flatMap(({ revived }) => revived),
    quarantined: reports.flatMap(({ quarantined }) => quarantined),
    ended: reports.flatMap(({ ended }) => ended),
    failed: reports.flatMap(({ failed }) => failed),
    healed: reports.flatMap(({ healed }) => healed),
    stranded: reports.flatMap(({ stranded }) => stranded),
    notes: reports.flatMap(({ notes }) => notes),
  }
}
