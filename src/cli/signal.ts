import type { Command } from 'commander'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { pickJob } from './pick-job.ts'
import { readInput } from './submit-input.ts'
import { complain, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

/** Adds `holdfast signal <job> <name> [payload]`. */
export function addSignal(program: Command): void {
  const command = program
    .command('signal')
    .description('Send a signal to a job. The payload is the output of the stage that waits for it.')
    .argument('<job>', 'Job id, or its last 8 characters.')
    .argument('<name>', 'Name of the signal.')
    .argument('[payload]', 'Payload: JSON, @file, or - for stdin.')
    .action((job: string, name: string, payload: string | undefined, flags: { json?: true }) =>
      signal(job, name, payload, flags),
    )
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast signal 099a8057 approved', 'without a payload'],
    [`holdfast signal 099a8057 approved '{"by":"mia"}'`, 'with a payload'],
  ])
}

async function signal(job: string, name: string, json: string | undefined, flags: { json?: true }): Promise<void> {
  const config = configOf({ ...flags })
  const payload = json === undefined ? null : await readInput(json)
  await withClient(config, async (hf) => {
    const id = await pickJob(hf, job)
    const { isNew, isAwaited } = await hf.signal(id, name, payload, { by: whoAmI() })
    if (flags.json) return print(JSON.stringify({ id, signal: name, isNew, isAwaited }, null, 2))
    if (!isNew) return complain(`${id} was sent ${name} before; the first signal counts, and nothing was changed.`)
    complain(isAwaited ? `${id} was waiting for ${name} and goes on.` : `${name} is kept until ${id} waits for it.`)
  })
}
