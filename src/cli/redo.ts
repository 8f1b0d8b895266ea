import type { Command } from 'commander'
import { legalFrom } from '../job/machine.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { forEachJob } from './many.ts'
import { whoAmI } from './who-am-i.ts'

const either = new Intl.ListFormat('en', { type: 'disjunction' })

/** Adds `holdfast redo <id…>`. */
export function addRedo(program: Command): void {
  const command = program
    .command('redo')
    .description(
      `Re-run ${either.format(legalFrom('redo'))} jobs, from the stage where they stopped or from the start.`,
    )
    .argument('<ids...>', 'Job ids, or their last 8 characters.')
    .option('--from-start', 'Start from the first stage; completed stages run again.')
    .action((ids: string[], flags: { fromStart?: true; json?: true }) =>
      forEachJob(configOf({ ...flags }), ids, {
        done: 'queued again',
        isJson: flags.json === true,
        act: (hf, id) => hf.redo(id, { by: whoAmI(), from: flags.fromStart ? 'start' : 'failed' }),
      }),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast redo 01890a5d-ac96-774b-bcce-b302099a8057', 'from the stage that failed'],
    ['holdfast redo 099a8057 --from-start', 'from the first stage'],
  ])
}
