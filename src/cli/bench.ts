import type { Command } from 'commander'
import { type BenchReport, bench, type FigureName, figures } from '../bench/bench.ts'
import { HoldfastError } from '../errors/errors.ts'
import { addExamples, addJson } from './flags.ts'
import { listenForEnd } from './signals.ts'
import { table } from './table.ts'
import { complain, print } from './terminal.ts'
import { parseWhole } from './time-words.ts'

interface Flags {
  url?: string
  jobs?: string
  rounds?: string
  json?: true
}

/** Adds `holdfast bench`. */
export function addBench(program: Command): void {
  const command = program
    .command('bench')
    .description('Measure what a job that does nothing costs on this machine.')
    // no environment variable stands in for this flag: nobody should load a server because a shell remembered it
    .option(
      '--url <text>',
      'Postgres to measure on, in a database of its own there. Without it, an embedded one that goes after.',
    )
    .option('--jobs <number>', 'Jobs of a bulk submit and of a drain (default: 50000).')
    .option('--rounds <number>', 'Rounds, of which the median counts (default: 3).')
    .action(run)
  addJson(command)
  addExamples(command, [
    ['holdfast bench', 'about a minute, on an embedded Postgres'],
    ['holdfast bench --url postgres://localhost/postgres --json', 'on a server of yours, for a program'],
  ])
}

async function run(flags: Flags): Promise<void> {
  const ending = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  const rounds = countOf('--rounds', flags.rounds, 3)
  const report = await bench({
    ...(flags.url && { url: flags.url }),
    jobs: countOf('--jobs', flags.jobs, 50_000),
    rounds,
    signal: ending.signal,
    onStep: ({ round, title }) => complain(`round ${round} of ${rounds}: ${title}`),
  })
  if (flags.json) return print(JSON.stringify(report, null, 2))
  for (const line of linesOf(report)) print(line)
}

function countOf(flag: string, word: string | undefined, standard: number): number {
  const count = word === undefined ? standard : parseWhole(flag, word)
  if (count >= 1 && count <= 10_000_000) return count
  throw new HoldfastError('option_invalid', `${flag} takes a number from 1 to 10,000,000, not ${word}.`)
}

function linesOf(report: BenchReport): string[] {
  const names = Object.keys(figures) as FigureName[]
  const rows = names.map((name) => {
    const { median, spread, isNoisy } = report.figures[name]
    const { title, unit } = figures[name]
    return [
      { text: title },
      { text: `${valueWords(median)} ${unit}` },
      { text: `${Math.round(spread * 100)} %${isNoisy ? ' (noisy)' : ''}` },
    ]
  })
  const { holdfast, postgres, cpu, cores, node, load, isDurable } = report
  return [
    ...table(['figure', 'median', 'spread'], rows),
    '',
    `Holdfast ${holdfast}, Postgres ${postgres}, Node ${node}; ${cpu}, ${cores} cores, load ${load}.`,
    ...(isDurable ? [] : ['Commits are not durable on this server (fsync or synchronous_commit is off).']),
  ]
}

function valueWords(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}
