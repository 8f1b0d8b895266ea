import type { Command } from 'commander'
import type { Slot } from '../schedule/schedule.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { scheduleCells, scheduleHeads, scheduleLines, slotCells, slotHeads } from './format-schedule.ts'
import { parseWhole } from './format-time.ts'
import { table } from './table.ts'
import { paint, print } from './terminal.ts'

interface Flags {
  tenant?: string
  kind?: string
  after?: string
  before?: string
  number: string
  json?: true
}

const mostShown = 10

const scopeOf = ({ tenant }: Pick<Flags, 'tenant'>) => (tenant === undefined ? {} : { tenant })

/** Adds `holdfast schedules list`. */
export function addList(schedules: Command): void {
  const command = schedules
    .command('list')
    .description('List schedules with their next slot, by tenant and name.')
    .option('--tenant <tenant>', 'Only this tenant.')
    .option('--kind <kind>', 'Only this kind of job.')
    .option('-n, --number <number>', 'Number of schedules, up to 1000.', '100')
    .option('--after <tenant/name>', 'Only schedules after this one, for the next page.')
    .action((flags: Flags) => list(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast schedules list --kind report', 'of one kind']])
}

/** Adds `holdfast schedules show <name>`. */
export function addShow(schedules: Command): void {
  const command = schedules
    .command('show')
    .description('Show a schedule and its latest slots.')
    .argument('<name>', 'Name of the schedule.')
    .option('--tenant <tenant>', 'Tenant that owns it.')
    .action((name: string, flags: Flags) => show(name, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast schedules show nightly', 'when it runs next, and how it went']])
}

/** Adds `holdfast schedules preview <name>`. */
export function addPreview(schedules: Command): void {
  const command = schedules
    .command('preview')
    .description('Show the next slots of a schedule, or of a pattern that is not stored.')
    .argument('[name]', 'Name of the schedule.')
    .option('--cron <pattern>', 'Pattern to preview instead of a schedule.')
    .option('--every <duration>', 'Interval to preview instead of a schedule.')
    .option('--tz <zone>', 'Time zone of the pattern.')
    .option('--tenant <tenant>', 'Tenant that owns the schedule.')
    .option('-n, --number <number>', 'Number of slots, up to 1000.', '10')
    .action((name: string | undefined, flags: Flags & PreviewFlags) => preview(name, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast schedules preview nightly', 'its next ten slots'],
    ['holdfast schedules preview --cron "30 2 * * *" --tz Europe/Berlin -n 400', 'a year, with its clock changes'],
  ])
}

/** Adds `holdfast schedules history <name>`. */
export function addHistory(schedules: Command): void {
  const command = schedules
    .command('history')
    .description('Show what became of the slots of a schedule, latest first.')
    .argument('<name>', 'Name of the schedule.')
    .option('--tenant <tenant>', 'Tenant that owns it.')
    .option('-n, --number <number>', 'Number of slots, up to 1000.', '20')
    .option('--before <time>', 'Only slots before this one, for the next page.')
    .action((name: string, flags: Flags) => history(name, flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [['holdfast schedules history nightly -n 100', 'the latest 100']])
}

interface PreviewFlags {
  cron?: string
  every?: string
  tz?: string
}

async function list(flags: Flags): Promise<void> {
  const limit = parseWhole('--number', flags.number)
  const [tenant = '', name = ''] = flags.after?.split('/') ?? []
  const found = await withClient(configOf({ ...flags }), (hf) =>
    hf.schedules.list({
      ...scopeOf(flags),
      limit,
      ...(flags.kind !== undefined && { kind: flags.kind }),
      ...(flags.after !== undefined && { after: { tenant, name } }),
    }),
  )
  const last = found.length === limit ? found.at(-1) : undefined
  const next = last ? `${last.tenant}/${last.name}` : null
  if (flags.json) return print(JSON.stringify({ schedules: found, next }, null, 2))
  if (found.length === 0) return print('No schedules match. Create one with `holdfast schedules set`.')
  for (const line of table(scheduleHeads, found.map(scheduleCells))) print(line)
  if (next) print(paint('dim', `More: holdfast schedules list --after ${next}`))
}

async function show(name: string, flags: Flags): Promise<void> {
  const { schedule, slots } = await withClient(configOf({ ...flags }), async (hf) => ({
    schedule: await hf.schedules.get(name, scopeOf(flags)),
    slots: await hf.schedules.history(name, { ...scopeOf(flags), limit: mostShown }),
  }))
  if (flags.json) return print(JSON.stringify({ schedule, slots }, null, 2))
  for (const line of scheduleLines(schedule)) print(line)
  print('')
  printSlots(slots)
}

async function preview(name: string | undefined, flags: Flags & PreviewFlags): Promise<void> {
  const { cron, every, tz } = flags
  const timing = {
    ...(cron !== undefined && { cron }),
    ...(every !== undefined && { every }),
    ...(tz !== undefined && { tz }),
  }
  const count = parseWhole('--number', flags.number)
  const slots = await withClient(configOf({ ...flags }), (hf) =>
    hf.schedules.preview(name ?? timing, { ...scopeOf(flags), count }),
  )
  if (flags.json) return print(JSON.stringify({ slots }, null, 2))
  for (const slot of slots) print(slot.toISOString())
}

async function history(name: string, flags: Flags): Promise<void> {
  const limit = parseWhole('--number', flags.number)
  const slots = await withClient(configOf({ ...flags }), (hf) =>
    hf.schedules.history(name, {
      ...scopeOf(flags),
      limit,
      ...(flags.before !== undefined && { before: new Date(flags.before) }),
    }),
  )
  const next = slots.length === limit ? (slots.at(-1)?.slotAt.toISOString() ?? null) : null
  if (flags.json) return print(JSON.stringify({ slots, next }, null, 2))
  printSlots(slots)
  if (next) print(paint('dim', `More: holdfast schedules history ${name} --before ${next}`))
}

function printSlots(slots: readonly Slot[]): void {
  const lines = slots.length === 0 ? ['No slots yet.'] : table(slotHeads, slots.map(slotCells))
  for (const line of lines) print(line)
}
