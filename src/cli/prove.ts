import type { Command } from 'commander'
import { HoldfastError } from '../errors/errors.ts'
import type { Progress } from '../prove/prove.ts'
import { addExamples, addJson } from './flags.ts'
import { listenForEnd } from './signals.ts'
import { complain, forTerminal, hasColours, paint, print } from './terminal.ts'

interface Flags {
  url?: string
  quick?: true
  seed?: string
  cell?: string
  lanes?: string
  force?: true
  json?: true
}

/** Adds `holdfast prove`. */
export function addProve(program: Command): void {
  const command = program
    .command('prove')
    .description(
      'Break a real system at every statement by every fault, and show that nothing is stuck, doubled or lost.',
    )
    // no environment variable stands in for this flag: nobody should break a server because a shell remembered it
    .option(
      '--url <text>',
      'Postgres to prove on, in databases of its own there. Without it, an embedded one that goes after.',
    )
    .option('--quick', 'Every statement once, with one or two faults each, chosen by the seed: some minutes.')
    .option('--seed <number>', 'Which occurrences to strike (default: 1).')
    .option('--cell <text>', 'Only this cell, as in "job.finish × kill-after".')
    .option('--lanes <number>', 'Cells at once (default: 4).')
    .option('--force', 'Prove on --url although its database already holds jobs.')
    .action(run)
  addJson(command)
  addExamples(command, [
    ['holdfast prove --quick', 'some minutes, as in CI'],
    ['holdfast prove --seed 7 --json', 'everything, for a machine to read'],
    ['holdfast prove --cell "job.finish × kill-after"', 'one cell again'],
  ])
}

async function run(flags: Flags): Promise<void> {
  const ending = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  // loaded when asked for: the prover is as large as the rest
  const [{ prove }, { holds, textOf }] = await Promise.all([import('../prove/prove.ts'), import('../prove/report.ts')])
  const report = await prove({
    ...(flags.url && { url: flags.url }),
    ...(flags.cell && { cell: flags.cell }),
    seed: wholeOf('seed', flags.seed, 1),
    lanes: wholeOf('lanes', flags.lanes, 4),
    isQuick: flags.quick === true,
    isForced: flags.force === true,
    signal: ending.signal,
    onProgress: process.stderr.isTTY ? drawBar : tellSteps(),
  })
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  print(flags.json ? JSON.stringify(report, null, 2) : coloured(textOf(report)))
  if (!holds(report)) process.exitCode = 1
}

function wholeOf(name: string, text: string | undefined, standard: number): number {
  if (text === undefined) return standard
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new HoldfastError('option_invalid', `--${name} takes a whole number from 1, not ${JSON.stringify(text)}.`)
}

const phases = { starting: 'starting Postgres', surveying: 'looking for statements', breaking: 'breaking' }

function drawBar({ phase, done, total, failed, last }: Progress): void {
  const width = 30
  const filled = total === 0 ? 0 : Math.round((done / total) * width)
  const bar = `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`
  const count = total === 0 ? '' : ` ${done}/${total}${failed > 0 ? paint('red', ` ✗ ${failed}`, process.stderr) : ''}`
  const at = last ? ` ${last.cell.statement} × ${last.cell.fault}` : ''
  process.stderr.write(`\r\u001b[K${forTerminal(`${phases[phase]} ${bar}${count}${at.slice(0, 50)}`)}`)
}

/** Without a terminal: a line for each phase, each tenth of the cells, and each cell that failed. */
function tellSteps(): (progress: Progress) => void {
  let told = ''
  return ({ phase, done, total, failed, last }) => {
    if (last && last.outcome.wrongs.length > 0)
      complain(`${markOf(last)} ${last.cell.statement} × ${last.cell.fault}: ${last.outcome.wrongs[0]}`)
    const tenth = total === 0 ? 0 : Math.floor((10 * done) / total)
    if (told === `${phase} ${tenth}`) return
    told = `${phase} ${tenth}`
    complain(total === 0 ? phases[phase] : `${phases[phase]}: ${done} of ${total} cells, ${failed} failed`)
  }
}

function markOf({ outcome }: NonNullable<Progress['last']>): string {
  return outcome.isOnlyLate ? 'late, to be tried again alone:' : '✗'
}

function coloured(text: string): string {
  if (!hasColours(process.stdout)) return text
  return text.replaceAll('✓', paint('green', '✓')).replaceAll('✗', paint('red', '✗'))
}
