import { type Case, isOver } from './case.ts'
import { eventually } from './deadline.ts'
import { suspectByHand } from './drain.sql.ts'
import { manned, waitMs } from './manned.ts'
import type { Scenario } from './scenario.ts'

/** A suspect runs alone, and no worker is ever empty by itself: one of them has to drain for it. */
export const drained: Scenario = {
  name: 'drain',
  provokes: 'a suspect that waits while all workers are busy, until one of them drains for it',
  owns: ['drain.take', 'drain.end'],
  async run(on) {
    await manned(on)
    await eventually(() => hasDrained(on), { ms: 2 * waitMs, what: 'a worker had drained for a suspect' })
  },
}

/** Lets a suspect fall due while both workers are busy. On a slow machine one may be empty by then, and takes it without more ado. */
async function hasDrained(on: Case): Promise<boolean> {
  const id = await on.submit('resting')
  await eventually(async () => (await on.ask(suspectByHand, { id })).length > 0 || on.areFinal([id]), {
    ms: waitMs,
    what: 'the job that is to be a suspect rested',
  })
  await eventually(() => areBusy(on), { ms: waitMs, everyMs: 100, what: 'both workers were busy' })
  await on.untilFinal([id], waitMs)
  return on.hasSent('drain.take')
}

/** Whether every worker holds a job that takes long. If not, there is one more. */
async function areBusy(on: Case): Promise<boolean> {
  const busy = new Set((await on.jobs()).filter((job) => job.kind === 'lasting' && !isOver(job)).map(({ pid }) => pid))
  const workers = on.crew.posts().filter(({ role, isUp }) => role === 'worker' && isUp)
  if (workers.length > 1 && workers.every(({ member }) => busy.has(member.pid))) return true
  await on.submit('lasting')
  return false
}
