import { Command, CommanderError } from 'commander'
import { version } from '../config/version.ts'
import { HoldfastError } from '../errors/errors.ts'
import { withoutPasswords } from '../errors/without-password.ts'
import { addAudit } from './audit.ts'
import { addBench } from './bench.ts'
import { addBulk } from './bulk.ts'
import { addCancel } from './cancel.ts'
import { addDev } from './dev.ts'
import { addEvents } from './events.ts'
import { isVerboseIn, tellFailure } from './failure.ts'
import { addFailures } from './failures.ts'
import { addJobs } from './jobs.ts'
import { addKeys } from './keys.ts'
import { addLimits } from './limits.ts'
import { addMigrate } from './migrate.ts'
import { addPause, addResume } from './pause.ts'
import { addProve } from './prove.ts'
import { addPrune } from './prune.ts'
import { addReap } from './reap.ts'
import { addRedo } from './redo.ts'
import { addSchedules } from './schedules.ts'
import { addServe } from './serve.ts'
import { addShow } from './show.ts'
import { addSignal } from './signal.ts'
import { addSubmit } from './submit.ts'
import { forTerminal, paint } from './terminal.ts'
import { addTop } from './top.ts'
import { addWebhooks } from './webhooks.ts'
import { addWhy } from './why.ts'
import { addWork } from './work.ts'
import { addWorkChild } from './work-child.ts'

const commands = [
  addDev,
  addServe,
  addWork,
  addReap,
  addMigrate,
  addSubmit,
  addJobs,
  addShow,
  addTop,
  addWhy,
  addCancel,
  addRedo,
  addSignal,
  addBulk,
  addFailures,
  addPause,
  addResume,
  addEvents,
  addWebhooks,
  addSchedules,
  addLimits,
  addKeys,
  addAudit,
  addPrune,
  addProve,
  addBench,
  addWorkChild,
]

const closing = `
Without --url or HOLDFAST_URL, commands use the embedded Postgres that \`npm start\` or \`holdfast dev\` runs in the data
folder of the working directory (.holdfast). Every setting has a flag and an environment variable: see a command's --help.

Try:
  $ holdfast dev                                   # everything, with a sample
  $ holdfast jobs                                  # in another terminal
  $ holdfast submit extract '{"document":"invoice-1001.txt"}' --wait

Exit codes: 0 success, 1 failure, 2 invalid usage.`

/** Runs one command line, and returns its exit code. */
export async function runCommand(argv: readonly string[]): Promise<number> {
  const program = makeProgram()
  try {
    if (argv.length === 0) program.outputHelp()
    if (argv.length > 0) await program.parseAsync([...argv], { from: 'user' })
    return Number(process.exitCode ?? 0)
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0 // --help and --version throw
    if (error instanceof CommanderError && error.code === 'commander.help') return 2 // a command group without a command prints its help
    return tellFailure(error instanceof CommanderError ? usageError(error) : error, {
      isJson: argv.includes('--json'),
      isVerbose: isVerboseIn(argv),
    })
  }
}

function makeProgram(): Command {
  const program = new Command('holdfast')
    .description('Durable jobs on Postgres: nothing gets stuck, nothing commits twice, nothing is lost.')
    .version(version)
    .exitOverride()
    .configureOutput({ writeOut: (text) => void process.stdout.write(forTerminal(text)), outputError: () => {} })
    .configureHelp({ styleTitle: (title) => paint('bold', title) })
    .addHelpText('after', closing)
  for (const add of commands) add(program)
  return program
}

function usageError({ message }: CommanderError): HoldfastError {
  const said = withoutPasswords(message)
    .replace(/^error: /, '')
    .replace(/\s*\n\s*/g, ' ')
  const sentence = `${said.charAt(0).toUpperCase()}${said.slice(1)}`
  const ended = /[.?)]$/.test(sentence) ? sentence : `${sentence}.`
  return new HoldfastError('option_invalid', `${ended} See --help.`)
}
