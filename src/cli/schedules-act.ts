import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { parseMoment, parseWhole } from './format-time.ts'
import { paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  tenant?: string
  reason?: string
  from?: string
  to?: string
  cap?: string
  json?: true
}

interface Act {
  name: string
  about: string
  example: readonly [line: string, about: string]
  /** Does it, and returns what to print as JSON, and in words. */
  run: (hf: Holdfast, schedule: string, act: { tenant?: string; by: string }, flags: Flags) => Promise<Done>
}

interface Done {
  json: object
  words: string
}

/** Adds `holdfast schedules pause <name>`. */
export function addPause(schedules: Command): void {
  const command = addAct(schedules, {
    name: 'pause',
    about: 'Pause a schedule until it is resumed. Its jobs go on.',
    example: ['holdfast schedules pause nightly --reason "database upgrade"', 'with a reason, for others'],
    run: async (hf, schedule, act, { reason }) => ({
      json: { schedule: await hf.schedules.pause(schedule, { ...act, ...(reason !== undefined && { reason }) }) },
      words: 'paused',
    }),
  })
  command.option('--reason <text>', 'Reason, shown with the schedule.')
}

/** Adds `holdfast schedules resume <name>`. */
export function addResume(schedules: Command): void {
  addAct(schedules, {
    name: 'resume',
    about: 'Resume a schedule at its next slot. The slots of the pause are skipped.',
    example: ['holdfast schedules resume nightly', 'at its next slot'],
    run: async (hf, name, act) => {
      const schedule = await hf.schedules.resume(name, act)
      return { json: { schedule }, words: `resumed; next ${schedule.nextAt?.toISOString() ?? 'never'}` }
    },
  })
}

/** Adds `holdfast schedules remove <name>`. */
export function addRemove(schedules: Command): void {
  addAct(schedules, {
    name: 'remove',
    about: 'Remove a schedule. Its jobs and its history stay.',
    example: ['holdfast schedules remove nightly', 'its jobs and history stay'],
    run: async (hf, name, act) => {
      await hf.schedules.remove(name, act)
      return { json: { removed: name }, words: 'removed' }
    },
  })
}

/** Adds `holdfast schedules trigger <name>`. */
export function addTrigger(schedules: Command): void {
  addAct(schedules, {
    name: 'trigger',
    about: 'Submit a job of a schedule now, even if it is paused.',
    example: ['holdfast schedules trigger nightly', 'now, beside its slots'],
    run: async (hf, name, act) => {
      const { job } = await hf.schedules.trigger(name, act)
      return { json: { job }, words: `submitted as ${job}` }
    },
  })
}

/** Adds `holdfast schedules backfill <name>`. */
export function addBackfill(schedules: Command): void {
  const command = addAct(schedules, {
    name: 'backfill',
    about: 'Submit the past slots of a range, except those whose job still exists.',
    example: ['holdfast schedules backfill nightly --from 2030-01-01 --to 2030-02-01', 'a month'],
    run: async (hf, name, act, { from = '', to, cap }) => {
      const range = {
        from: parseMoment('--from', from),
        ...(to !== undefined && { to: parseMoment('--to', to) }),
        ...(cap !== undefined && { cap: parseWhole('--cap', cap) }),
      }
      const done = await hf.schedules.backfill(name, range, act)
      return { json: done, words: `${done.submitted} submitted, ${done.existing} exist already` }
    },
  })
  command
    .requiredOption('--from <moment>', 'First moment of the range, included.')
    .option('--to <moment>', 'Last moment of the range, excluded. Default: now.')
    .option('--cap <number>', 'How many slots the range may have. Default: 100.')
}

function addAct(schedules: Command, { name, about, example, run }: Act): Command {
  const command = schedules
    .command(name)
    .description(about)
    .argument('<name>', 'Name of the schedule.')
    .option('--tenant <tenant>', 'Tenant that owns it.')
    .action(async (schedule: string, flags: Flags) => {
      const act = { by: whoAmI(), ...(flags.tenant !== undefined && { tenant: flags.tenant }) }
      const { json, words } = await withClient(configOf({ ...flags }), (hf) => run(hf, schedule, act, flags))
      print(flags.json ? JSON.stringify(json, null, 2) : `${schedule}  ${paint('green', words)}`)
    })
  addSettings(addJson(command), clientSettings)
  addExamples(command, [example])
  return command
}
