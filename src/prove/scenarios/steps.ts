import { eventually } from '../deadline.ts'
import type { ScenarioContext } from '../scenario-context.ts'

/** How long a scenario waits for something that has to happen. */
export const waitMs = 15_000

/** Starts what most scenarios need: a submitter and two workers. */
export async function startSubmitterAndWorkers(context: ScenarioContext): Promise<void> {
  await Promise.all([context.processes.start('submitter', 'submitter'), startWorkers(context)])
}

export async function startWorkers({ processes }: ScenarioContext): Promise<void> {
  await Promise.all([processes.start('worker-1', 'worker'), processes.start('worker-2', 'worker')])
}

/** Whether a handler of that job has started. */
export function hasStarted({ processes }: ScenarioContext, id: string): boolean {
  return processes.effects.some((effect) => effect.jobId === id)
}

/** Cancels the stubborn job once its handler has started. */
export async function cancelStubborn(context: ScenarioContext): Promise<void> {
  const id = context.idOf('stubborn')
  await eventually(() => hasStarted(context, id), { ms: waitMs, what: 'the stubborn handler had started' })
  await context.move('cancel', id, ['cancelled'])
  // it keeps running for a while, and its reports are refused; if its worker was killed, there are none
  await context.untilSent('refusal.record', 1_000).catch(() => {})
}
