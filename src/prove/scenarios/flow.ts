import { isFinal, type State } from '../../job/machine.ts'
import type { OnConflict } from '../../job/unique.ts'
import { eventually } from '../deadline.ts'
import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { startWorkers, waitMs } from './steps.ts'

/** Jobs that are put off, wait for signals, or are unique. */
export const flow: Scenario = {
  name: 'flow',
  provokes:
    'handlers that snooze, stages that wait for signals that come early, late and twice, and unique jobs that are kept, replaced and rescheduled',
  async run(context) {
    await context.processes.start('submitter', 'submitter')
    // its window is over before the first leader looks
    await submitUnique(context, 'passing', 'keep', { windowMs: 1 })
    const early = await context.submit('approval')
    await signal(context, early)
    await startWorkers(context)
    await Promise.all([context.submit('snoozing'), signalLate(context), replaceOften(context)])
    await signal(context, early)
  },
}

/** Sends a signal once its job waits for it. */
async function signalLate(context: ScenarioContext): Promise<void> {
  const id = await context.submit('approval')
  await untilWaiting(context, id, { stage: 1, attempt: 2 })
  await signal(context, id)
}

/** Waits until a job waits at this stage, after so many attempts. */
export async function untilWaiting(
  context: ScenarioContext,
  id: string,
  { stage, attempt }: { stage: number; attempt: number },
): Promise<void> {
  const isWaiting = async () =>
    (await context.jobs()).some(
      (job) => job.id === id && job.state === 'queued' && job.stage === stage && job.attempt >= attempt,
    )
  await eventually(isWaiting, { ms: waitMs, what: 'the job waited for its signal' })
}

/** Sends a signal. If a response was lost, the job may have ended by the next try. */
export async function signal(context: ScenarioContext, id: string): Promise<void> {
  const answer = await context.processes.order({ do: 'signal', id, name: 'approved' })
  if (!answer.isDone && answer.code !== 'signal_refused')
    throw new Error(`A signal to job ${id} was refused: ${answer.message}`)
}

/** Replaces a unique job several times. The last one must run, whatever happened to the others. */
async function replaceOften(context: ScenarioContext): Promise<void> {
  for (let round = 0; round < 3; round++) await submitUnique(context, 'latest', 'replace')
  const [last] = await submitUnique(context, 'latest', 'replace', {}, 400)
  await submitUnique(context, 'latest', 'keep')
  await submitUnique(context, 'latest', 'reschedule')
  await context.untilFinal([last as string], waitMs)
  const state = (await context.jobs()).find(({ id }) => id === last)?.state as State
  if (!isFinal(state) || state !== 'succeeded') throw new Error(`The last unique job ${last} is ${state}.`)
}

async function submitUnique(
  context: ScenarioContext,
  key: string,
  onConflict: OnConflict,
  how: { windowMs?: number } = {},
  delayMs?: number,
): Promise<string[]> {
  const order = { do: 'submit-unique', kind: 'unique', unique: { key, ...how }, onConflict } as const
  const answer = await context.processes.order({ ...order, ...(delayMs !== undefined && { delayMs }) })
  if (answer.isDone) return answer.values
  throw new Error(`A submit of a unique job was refused: ${answer.message}`)
}
