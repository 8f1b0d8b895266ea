import type { Command } from 'commander'
import type { NewSchedule } from '../schedule/schedule.ts'
import { withClient } from './client.ts'
import { findKind } from './find-kind.ts'
import { addExamples, addJson, addSettings, configOf, submitSettings } from './flags.ts'
import { scheduleLines } from './format-schedule.ts'
import { parseMoment, parseWhole } from './format-time.ts'
import { readInput } from './submit-input.ts'
import { print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  cron?: string
  every?: string
  tz?: string
  jitter?: string
  startsAt?: string
  endsAt?: string
  missed?: string
  missedWindow?: string
  missedCap?: string
  overlap?: string
  tenant?: string
  priority?: string
  module?: string
  json?: true
}

/** Adds `holdfast schedules set <name> <kind> [json]`. */
export function addSet(schedules: Command): void {
  const command = schedules
    .command('set')
    .description('Set a schedule: create it, or replace its definition.')
    .argument('<name>', 'Name of the schedule.')
    .argument('<kind>', 'Kind of its jobs.')
    .argument('[json]', 'Input of its jobs: JSON, @file, or - for stdin.')
    .option('--cron <pattern>', 'When it runs: "minute hour day month weekday", or with seconds first, or @daily.')
    .option('--every <duration>', 'When it runs instead: 30s, 10m, 1d.')
    .option('--tz <zone>', 'Time zone of the pattern, such as Europe/Berlin. Default: UTC.')
    .option('--jitter <duration>', 'Delay each job by up to this long.')
    .option('--starts-at <moment>', 'No slot before this.')
    .option('--ends-at <moment>', 'No slot after this.')
    .option('--missed <mode>', 'Slots that nobody could run in time: skip, latest or all. Default: latest.')
    .option('--missed-window <duration>', 'With --missed all, how old a slot may be. Default: 1d.')
    .option('--missed-cap <number>', 'With --missed all, how many slots to run. Default: 100.')
    .option('--overlap <mode>', 'While the job of an earlier slot runs: skip, buffer, allow or cancel. Default: skip.')
    .option('--tenant <name>', 'Tenant that owns the schedule and its jobs.')
    .option('--priority <number>', '1 (first) to 4 (last).')
    .option('--module <file>', 'Module that defines the kind. The input is validated against its schema.')
    .action((name: string, kind: string, json: string | undefined, flags: Flags) => set(name, kind, json, flags))
  addSettings(addJson(command), [...submitSettings, 'scheduleMissedAfterMs', 'schedulesPerTenant'])
  addExamples(command, [
    [`holdfast schedules set nightly report '{"days":1}' --cron "0 3 * * *" --tz Europe/Berlin`, 'every night'],
    ['holdfast schedules set sync import --every 10m --overlap buffer', 'every ten minutes, one after the other'],
  ])
}

async function set(name: string, kind: string, json: string | undefined, flags: Flags): Promise<void> {
  const timing = timingOf(flags)
  const input = await readInput(json)
  const schedule = await withClient(configOf({ ...flags }), async (hf) => {
    const job = await findKind(hf, kind, flags)
    return hf.schedules.set(name, { ...timing, kind: job, ...(input !== undefined && { input }) }, { by: whoAmI() })
  })
  if (flags.json) return print(JSON.stringify({ schedule }, null, 2))
  for (const line of scheduleLines(schedule)) print(line)
}

function timingOf(flags: Flags): Omit<NewSchedule, 'kind' | 'input'> {
  const { cron, every, tz, jitter, startsAt, endsAt, missed, missedWindow, missedCap, overlap, tenant, priority } =
    flags
  const words = { cron, every, tz, jitter, missed, missedWindow, overlap, tenant }
  const given = Object.fromEntries(Object.entries(words).filter(([, value]) => value !== undefined))
  return {
    ...(given as Omit<NewSchedule, 'kind'>),
    ...(startsAt !== undefined && { startsAt: parseMoment('--starts-at', startsAt) }),
    ...(endsAt !== undefined && { endsAt: parseMoment('--ends-at', endsAt) }),
    ...(missedCap !== undefined && { missedCap: parseWhole('--missed-cap', missedCap) }),
    ...(priority !== undefined && { priority: parseWhole('--priority', priority) }),
  }
}
