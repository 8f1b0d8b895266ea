import type { Command } from 'commander'
import { addExamples } from './flags.ts'
import { addDeliveries } from './webhooks-deliveries.ts'
import { addList, addShow } from './webhooks-list.ts'
import { addAdd, addRotate, addUpdate } from './webhooks-make.ts'
import { addReplay } from './webhooks-replay.ts'
import { addDisable, addEnable, addRemove } from './webhooks-switch.ts'
import { addTest } from './webhooks-test.ts'

const commands = [
  addAdd,
  addList,
  addShow,
  addUpdate,
  addRotate,
  addEnable,
  addDisable,
  addRemove,
  addTest,
  addDeliveries,
  addReplay,
]

/** Adds `holdfast webhooks` with its commands. */
export function addWebhooks(program: Command): void {
  const webhooks = program.command('webhooks').description('Manage webhook endpoints and their deliveries.')
  for (const add of commands) add(webhooks)
  addExamples(webhooks, [
    ['holdfast webhooks add https://example.com/hooks --types "job.*"', 'create an endpoint'],
    ['holdfast webhooks deliveries --state dead', 'failed deliveries'],
    ['holdfast webhooks replay --all', 'resend all failed deliveries'],
  ])
}
