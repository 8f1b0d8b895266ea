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
  const webhooks = program
    .command('webhooks')
    .description('Webhooks: endpoints that are told what happens, and what was sent to them.')
  for (const add of commands) add(webhooks)
  addExamples(webhooks, [
    ['holdfast webhooks add https://example.com/hooks --types "job.*"', 'tell somebody'],
    ['holdfast webhooks deliveries --state dead', 'what did not arrive'],
    ['holdfast webhooks replay --all', 'and all of it once more'],
  ])
}
