import type { Command } from 'commander'
import { HoldfastError } from '../errors/errors.ts'
import type { Limit, LimitTarget, QueueRules } from '../limits/limits.ts'
import { withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { formatAge, parseLength } from './format-time.ts'
import { table } from './table.ts'
import { complain, paint, print } from './terminal.ts'
import { whoAmI } from './who-am-i.ts'

interface Flags {
  kind?: string
  queue?: string
  key?: string
  running?: string
  rate?: string
  fair?: boolean
  weight?: string[]
  json?: true
}

/** Adds `holdfast limits …`. */
export function addLimits(program: Command): void {
  const limits = program
    .command('limits')
    .description('Limit how many jobs run at the same time or start in a span of time.')
  addList(limits)
  addSet(limits)
  addRemove(limits)
}

function addList(limits: Command): void {
  const command = limits
    .command('list')
    .description('List all limits, and how many jobs hold their slots.')
    .action((flags: Flags) => list(flags))
  addSettings(addJson(command), clientSettings)
}

function addTarget(command: Command): Command {
  return command
    .option('--kind <kind>', 'The kind that it is on.')
    .option('--queue <queue>', 'The queue that it is on.')
    .option('--key <key>', 'A key of the kind, or "*" for every key.')
}

function addSet(limits: Command): void {
  const command = addTarget(
    limits.command('set').description('Set a limit. It takes effect at once, until it is removed.'),
  )
    .option('--running <count>', 'How many jobs may run at the same time.')
    .option('--rate <count/time>', 'How many jobs may start in a span of time: 100/1m.')
    .option('--fair', 'Let the tenants of the queue take turns.')
    .option('--no-fair', 'Let them not take turns.')
    .option('--weight <tenant=number...>', 'How many turns a tenant gets for one of another.')
    .action((flags: Flags) => set(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast limits set --kind mail --running 10', 'ten at a time'],
    ['holdfast limits set --kind mail --key acme --rate 100/1m', 'a hundred a minute for one key'],
    ['holdfast limits set --queue default --fair --weight gold=3', 'tenants take turns; gold gets three'],
  ])
}

function addRemove(limits: Command): void {
  const command = addTarget(
    limits.command('remove').description('Remove a limit that was set. What the code declares applies again.'),
  ).action((flags: Flags) => remove(flags))
  addSettings(addJson(command), clientSettings)
}

async function list(flags: Flags): Promise<void> {
  const all = await withClient(configOf({ ...flags }), (hf) => hf.limits.list())
  if (flags.json) return print(JSON.stringify(all, null, 2))
  if (all.length === 0) return complain('No limits. See `holdfast limits set --help`.')
  const rows = all.map((limit) => [
    { text: formatTarget(limit.target) },
    { text: formatRules(limit) },
    { text: limit.running === null ? '' : String(limit.running) },
    { text: limit.source },
    { text: formatAge(limit.changedAt) },
    { text: limit.changedBy ?? '' },
  ])
  for (const line of table(['ON', 'LIMIT', 'RUNNING', 'SOURCE', 'CHANGED', 'BY'], rows)) print(line)
}

async function set(flags: Flags): Promise<void> {
  const target = targetOf(flags)
  const limit = await withClient(configOf({ ...flags }), async (hf) => {
    await hf.limits.set(target, rulesOf(flags), { by: whoAmI() })
    return hf.limits.get(target)
  })
  if (flags.json) return print(JSON.stringify(limit, null, 2))
  print(`${paint('green', 'Set')} ${formatTarget(target)}: ${limit ? formatRules(limit) : 'no limit'}.`)
}

async function remove(flags: Flags): Promise<void> {
  const target = targetOf(flags)
  const limit = await withClient(configOf({ ...flags }), async (hf) => {
    await hf.limits.remove(target, { by: whoAmI() })
    return hf.limits.get(target)
  })
  if (flags.json) return print(JSON.stringify(limit, null, 2))
  print(
    `${paint('green', 'Removed')} the limit of ${formatTarget(target)}${limit ? `; the code declares ${formatRules(limit)}` : ''}.`,
  )
}

function targetOf({ kind, queue, key }: Flags): LimitTarget {
  if ((kind === undefined) === (queue === undefined))
    throw new HoldfastError('option_invalid', 'Choose what the limit is on: --kind <kind> or --queue <queue>.')
  if (queue !== undefined && key !== undefined)
    throw new HoldfastError('option_invalid', 'Only kinds have keys: pass --kind with --key.')
  return queue === undefined ? { kind: kind as string, ...(key !== undefined && { key }) } : { queue }
}

function rulesOf({ running, rate, fair, weight }: Flags): QueueRules {
  return {
    ...(running !== undefined && { concurrency: Number(running) }),
    ...(rate !== undefined && { rate: rateOf(rate) }),
    ...(fair !== undefined && { fair }),
    ...(weight && { weights: Object.fromEntries(weight.map(weightOf)) }),
  }
}

function rateOf(word: string): { limit: number; perMs: number } {
  const [count, time] = word.split('/')
  if (!count || !time) throw new HoldfastError('option_invalid', `--rate must look like 100/1m, not ${word}.`)
  return { limit: Number(count), perMs: parseLength('--rate', time) }
}

function weightOf(word: string): [string, number] {
  const [tenant, weight] = word.split('=')
  if (!tenant || !weight) throw new HoldfastError('option_invalid', `--weight must look like acme=2, not ${word}.`)
  return [tenant, Number(weight)]
}

function formatTarget(target: LimitTarget): string {
  if ('queue' in target) return `queue ${target.queue}`
  if (target.key === undefined) return `kind ${target.kind}`
  return target.key === '*' ? `kind ${target.kind}, every key` : `kind ${target.kind}, key ${target.key}`
}

function formatRules({ concurrency, rate, fair, weights }: Partial<Limit>): string {
  return [
    concurrency !== undefined && `${concurrency} at a time`,
    rate && `${rate.limit} per ${rate.perMs} ms`,
    fair && 'fair',
    weights &&
      Object.entries(weights)
        .map(([tenant, weight]) => `${tenant}=${weight}`)
        .join(' '),
  ]
    .filter(Boolean)
    .join(', ')
}
