import type { Command } from 'commander'
import { type BenchReport, bench, type FigureName, figures } from '../bench/bench.ts'
import { HoldfastError } from '../errors/errors.ts'
import { addExamples, addJson } from './flags.ts'
import { parseWhole } from './format-time.ts'
import { listenForEnd } from './signals.ts'
import { table } from './table.ts'
import { complain, print } from './terminal.ts'

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
    .description('Measure the overhead of an empty job on this machine.')
    // deliberately not read from the environment: a variable left over in a shell must not put load on a server
    .option(
      '--url <text>',
      'Postgres server to benchmark; creates its own database there. Default: a temporary embedded Postgres.',
    )
    .option('--jobs <number>', 'Number of jobs to bulk-submit and drain (default: 50000).')
    .option('--rounds <number>', 'Number of rounds; the median is reported (default: 3).')
    .action(run)
  addJson(command)
  addExamples(command, [
    ['holdfast bench', 'about a minute, on an embedded Postgres'],
    ['holdfast bench --url postgres://localhost/postgres --json', 'on your own server, as JSON'],
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
      { text: `${formatValue(median)} ${unit}` },
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

function formatValue(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2)
}
