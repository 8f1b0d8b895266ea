import type { Command } from 'commander'
import type { PostResult } from '../webhooks/post.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, configOf, webhookSettings } from './flags.ts'
import { formatDuration } from './format-time.ts'
import { pickEndpoint } from './pick-webhook.ts'
import { complain, oneLine, paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

/** Adds `holdfast webhooks test <id>`. */
export function addTest(webhooks: Command): void {
  const command = webhooks
    .command('test')
    .description('Send a signed test event to an endpoint and report the result. Exits with code 1 if delivery fails.')
    .argument('<id>', 'Endpoint id, or its last 8 characters.')
    .action((id: string, flags: { json?: true }) => test(id, flags))
  addSettings(addJson(command), [...webhookSettings, 'webhookTimeoutMs', 'webhookLookupMs', 'webhookNameServers'])
  addExamples(command, [['holdfast webhooks test 099a8057', 'check that its receiver accepts deliveries']])
}

async function test(word: string, flags: { json?: true }): Promise<void> {
  const result = await withClient(configOf({ ...flags }), async (hf) =>
    hf.webhooks.test(await pickEndpoint(hf, word), { by: whoAmI() }),
  )
  if (result.kind !== 'delivered') process.exitCode = 1
  if (flags.json) return print(JSON.stringify(result, null, 2))
  if (result.kind !== 'delivered') return logError(result)
  print(`${paint('green', 'delivered')}: the receiver answered ${result.status} in ${formatDuration(result.ms)}.`)
}

function logError(result: Exclude<PostResult, { kind: 'delivered' }>): void {
  const took = formatDuration(result.ms)
  complain(`${paint('red', 'not delivered', process.stderr)} (${took}): ${oneLine(result.reason)}`)
  if (result.excerpt) complain(`Response: ${oneLine(result.excerpt)}`)
  complain(
    result.kind === 'retry'
      ? 'A real delivery would be retried later.'
      : 'A real delivery would not be retried: it would become a dead letter.',
  )
}
