import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import { isOver, type ScenarioContext } from '../scenario-context.ts'
import { suspectByHand } from './drain.sql.ts'
import { startSubmitterAndWorkers, waitMs } from './steps.ts'

/** A suspect runs alone, and no worker is ever empty by itself: one of them has to drain for it. */
export const drain: Scenario = {
  name: 'drain',
  provokes: 'a suspect that waits while all workers are busy, until one of them drains for it',
  owns: ['drain.take', 'drain.end'],
  async run(context) {
    await startSubmitterAndWorkers(context)
    await eventually(() => hasDrained(context), { ms: 2 * waitMs, what: 'a worker had drained for a suspect' })
  },
}

/** Lets a suspect become due while both workers are busy. On a slow machine one may be empty by then, and takes it without draining. */
async function hasDrained(context: ScenarioContext): Promise<boolean> {
  const id = await context.submit('resting')
  const isSuspect = async () => (await context.ask(suspectByHand, { id })).length > 0 || context.areFinal([id])
  await eventually(isSuspect, { ms: waitMs, what: 'the job that is to be a suspect waited for its retry' })
  await eventually(() => areBusy(context), { ms: waitMs, everyMs: 100, what: 'both workers were busy' })
  await context.untilFinal([id], waitMs)
  return context.hasSent('drain.take')
}

/** Whether every worker holds a long job. If not, submits one more. */
async function areBusy(context: ScenarioContext): Promise<boolean> {
  const long = (await context.jobs()).filter((job) => job.kind === 'lasting' && !isOver(job))
  const busy = new Set(long.map(({ pid }) => pid))
  const workers = context.processes.all().filter(({ role, isUp }) => role === 'worker' && isUp)
  if (workers.length > 1 && workers.every(({ member }) => busy.has(member.pid))) return true
  await context.submit('lasting')
  return false
}
