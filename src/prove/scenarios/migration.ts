import type { Scenario } from '../scenario.ts'
import { startSubmitterAndWorkers } from './steps.ts'

/** The first start on an empty database. */
export const migration: Scenario = {
  name: 'migrate',
  provokes: 'the first start on an empty database, by two processes at once',
  isBlank: true,
  async run(context) {
    const { processes } = context
    await Promise.all([processes.start('migrator-1', 'migrator'), processes.start('migrator-2', 'migrator')])
    await startSubmitterAndWorkers(context)
    await context.submit('short')
  },
}
