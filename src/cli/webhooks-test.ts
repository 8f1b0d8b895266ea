import type { Command } from 'commander'
import type { PostResult } from '../webhooks/post.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, configOf, webhookSettings } from './flags.ts'
import { pickEndpoint } from './pick-webhook.ts'
import { complain, oneLine, paint, print } from './terminal.ts'
import { lengthWords } from './time-words.ts'
import { whoAmI } from './who-am-i.ts'

/** Adds `holdfast webhooks test <id>`. */
export function addTest(webhooks: Command): void {
  const command = webhooks
    .command('test')
    .description('Send a signed sample to an endpoint, once, and say what came of it. Code 1 if it did not arrive.')
    .argument('<id>', 'The id of an endpoint, or its last 8 letters.')
    .action((id: string, flags: { json?: true }) => test(id, flags))
  addSettings(addJson(command), [...webhookSettings, 'webhookTimeoutMs', 'webhookLookupMs', 'webhookNameServers'])
  addExamples(command, [['holdfast webhooks test 099a8057', 'whether its receiver takes what is sent']])
}

async function test(word: string, flags: { json?: true }): Promise<void> {
  const result = await withClient(configOf({ ...flags }), async (hf) =>
    hf.webhooks.test(await pickEndpoint(hf, word), { by: whoAmI() }),
  )
  if (result.kind !== 'delivered') process.exitCode = 1
  if (flags.json) return print(JSON.stringify(result, null, 2))
  if (result.kind !== 'delivered') return tellTrouble(result)
  print(`${paint('green', 'arrived')}: the receiver answered ${result.status} in ${lengthWords(result.ms)}.`)
}

function tellTrouble(result: Exclude<PostResult, { kind: 'delivered' }>): void {
  const took = lengthWords(result.ms)
  complain(`${paint('red', 'did not arrive', process.stderr)} (${took}): ${oneLine(result.reason)}`)
  if (result.excerpt) complain(`It said: ${oneLine(result.excerpt)}`)
  complain(
    result.kind === 'retry'
      ? 'A delivery would be tried again later.'
      : 'A delivery would not be tried again: it would become a dead letter.',
  )
}
