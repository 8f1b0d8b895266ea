import type { Command } from 'commander'
import { HoldfastError } from '../errors/errors.ts'
import type { Progress } from '../prove/prove.ts'
import { addExamples, addJson } from './flags.ts'
import { listenForEnd } from './signals.ts'
import { complain, forTerminal, hasColors, paint, print } from './terminal.ts'

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
      'Inject every fault at every SQL statement of a real system, and verify that no job gets stuck, commits twice or is lost.',
    )
    // deliberately not read from the environment: a variable left over in a shell must not break a server
    .option(
      '--url <text>',
      'Postgres server to test; creates its own databases there. Default: a temporary embedded Postgres.',
    )
    .option('--quick', 'Test each statement with one or two faults, chosen by the seed. Takes a few minutes.')
    .option('--seed <number>', 'Random seed that selects where faults strike (default: 1).')
    .option('--cell <text>', 'Run only this cell, such as "job.finish × kill-after".')
    .option('--lanes <number>', 'Number of cells to run in parallel (default: 4).')
    .option('--force', 'Run on --url even if its database already has jobs.')
    .action(run)
  addJson(command)
  addExamples(command, [
    ['holdfast prove --quick', 'a few minutes, as in CI'],
    ['holdfast prove --seed 7 --json', 'everything, as JSON'],
    ['holdfast prove --cell "job.finish × kill-after"', 're-run one cell'],
  ])
}

async function run(flags: Flags): Promise<void> {
  const ending = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  // loaded on demand: the prover is as large as everything else
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
  throw new HoldfastError('option_invalid', `--${name} takes a positive whole number, not ${JSON.stringify(text)}.`)
}

const phases = { starting: 'starting Postgres', surveying: 'finding statements', breaking: 'injecting faults' }

function drawBar({ phase, done, total, failed, last }: Progress): void {
  const width = 30
  const filled = total === 0 ? 0 : Math.round((done / total) * width)
  const bar = `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`
  const count = total === 0 ? '' : ` ${done}/${total}${failed > 0 ? paint('red', ` ✗ ${failed}`, process.stderr) : ''}`
  const at = last ? ` ${last.cell.statement} × ${last.cell.fault}` : ''
  process.stderr.write(`\r\u001b[K${forTerminal(`${phases[phase]} ${bar}${count}${at.slice(0, 50)}`)}`)
}

/** Reports progress without a terminal: a line for each phase, each tenth of the cells, and each failed cell. */
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
  return outcome.isOnlyLate ? 'late, will be retried alone:' : '✗'
}

function coloured(text: string): string {
  if (!hasColors(process.stdout)) return text
  return text.replaceAll('✓', paint('green', '✓')).replaceAll('✗', paint('red', '✗'))
}
