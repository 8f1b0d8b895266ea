import type { Scenario } from '../scenario.ts'
import type { ScenarioContext } from '../scenario-context.ts'
import { cancelStubborn, startSubmitterAndWorkers, waitMs } from './steps.ts'

/** The everyday life of a healthy system. */
export const work: Scenario = {
  name: 'work',
  provokes: 'everything that happens in a healthy system every day',
  async run(context) {
    await startSubmitterAndWorkers(context)
    const kinds = ['short', 'staged', 'flaky', 'doomed', 'usable', 'chatty', 'patient', 'stubborn']
    const [short] = await Promise.all([
      context.submit('short'),
      ...context.shuffled(kinds).map((kind) => context.submit(kind)),
      context.submitMany('short', 3),
    ])
    await Promise.all([
      context.submitAgain(short),
      cancelStubborn(context),
      redoDoomed(context),
      context.processes.order({ do: 'read', id: short }),
      context.processes.order({ do: 'pause' }),
      context.processes.order({ do: 'await', id: short }),
    ])
  },
}

async function redoDoomed(context: ScenarioContext): Promise<void> {
  const id = context.idOf('doomed')
  await context.untilFinal([id], waitMs)
  // if a response was lost, it may be anywhere in its second round
  await context.move('redo', id, ['queued', 'running', 'failed'])
}

/** A claim and a settle whose responses are lost. */
export const ambiguous: Scenario = {
  name: 'ambiguous',
  provokes: 'the checks whether a settle or a claim whose response was lost has been carried out',
  prelude: [
    { statement: 'job.claim', fault: 'cut-after' },
    { statement: 'job.finish', fault: 'cut-after' },
  ],
  async run(context) {
    await startSubmitterAndWorkers(context)
    await Promise.all([context.submit('short'), context.submit('patient')])
  },
}

/** A system with nothing to do. */
export const idle: Scenario = {
  name: 'idle',
  provokes: 'what an idle system does: it probes the bus every five seconds',
  owns: ['bus.probe'],
  async run(context) {
    await startSubmitterAndWorkers(context)
    await context.submit('short')
    await context.untilSent('bus.probe', waitMs)
  },
}
