import type { Command } from 'commander'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { forEachJob } from './many.ts'
import { whoAmI } from './who-am-i.ts'

/** Adds `holdfast cancel <id…>`. */
export function addCancel(program: Command): void {
  const command = program
    .command('cancel')
    .description('Cancel jobs that have not ended. A running handler is notified through its abort signal.')
    .argument('<ids...>', 'Job ids, or their last 8 characters.')
    .option('--reason <text>', "Reason, recorded in the job's timeline.")
    .action((ids: string[], flags: { reason?: string; json?: true }) =>
      forEachJob(configOf({ ...flags }), ids, {
        done: 'cancelled',
        isJson: flags.json === true,
        act: (hf, id) => hf.cancel(id, { by: whoAmI(), ...(flags.reason !== undefined && { reason: flags.reason }) }),
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast cancel 01890a5d-ac96-774b-bcce-b302099a8057', 'one job'],
    ['holdfast cancel 099a8057 099a9112 --reason "wrong input"', 'two jobs, by the last 8 characters'],
  ])
}
