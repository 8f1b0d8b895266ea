import type { Command } from 'commander'
import type { Holdfast } from '../engine/engine.ts'
import { makeLog } from '../engine/log.ts'
import { messageOf } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addSettings, configOf, workSettings } from './flags.ts'
import { healthOf, startHealth } from './health.ts'
import { ladderLines } from './ladder-words.ts'
import { listenForEnd } from './signals.ts'
import type { SupervisorNews } from './supervisor.ts'
import { complain } from './terminal.ts'
import { lengthWords } from './time-words.ts'
import { makeWorkers } from './workers.ts'

/** Adds `holdfast work <module>`. */
export function addWork(program: Command): void {
  const command = program
    .command('work')
    .description(
      'Work on the kinds that a module exports, in processes of their own that are started again if they crash.',
    )
    .argument('<module>', 'A file that exports what defineJob returned, by name or in a default list.')
    .action((module: string, flags: Record<string, unknown>) => work(module, flags))
  addSettings(command, workSettings)
  addExamples(command, [
    ['holdfast work jobs.mjs', 'with the settings of the environment'],
    ['holdfast work jobs.mjs --processes 4 --concurrency 20', 'up to 80 handlers at once'],
    ['holdfast work jobs.mjs --queues mail,reports', 'only these queues'],
  ])
  command.addHelpText(
    'after',
    '\nSIGTERM or Ctrl-C once: claim no more, let handlers finish within --drain-ms, give back the rest. Twice: at once.',
  )
}

async function work(module: string, flags: Record<string, unknown>): Promise<void> {
  const config = configOf(flags)
  await withClient(config, (hf) => workUntilAsked(hf, module), makeLog(config.logLevel))
}

async function workUntilAsked(hf: Holdfast, module: string): Promise<void> {
  const workers = makeWorkers({ hf, module, isDatabaseOurs: false, onTrouble, news })
  const ending = listenForEnd({
    hurriedBy: ['SIGINT', 'SIGTERM'],
    onHurry: () => {
      complain('Ending the worker processes at once.')
      process.exitCode = 1
      workers.kill()
    },
  })
  const health = await startHealth(hf.config, healthOf(hf, workers), onTrouble)
  if (health.url) complain(`Health at ${health.url}/livez and /readyz.`)
  const started = workers.start()
  await Promise.race([started.then(() => tellLadder(hf)), ending.asked])
  await ending.asked
  complain('Stopping: the worker processes finish what they run. A second signal ends them at once.')
  await workers.stop()
  await health.stop()
  await started.catch(() => {}) // a start that was cut short failed for that reason
  complain('Stopped.')
}

function tellLadder({ config }: Holdfast): void {
  complain('A job whose worker is lost moves again within:')
  for (const line of ladderLines(config)) complain(`  ${line}`)
}

function onTrouble(error: unknown): void {
  complain(messageOf(error))
}

const news: SupervisorNews = {
  started: (pid) => complain(`Worker process ${pid} works.`),
  ended: (pid, how, againInMs) =>
    complain(`Worker process ${pid} ${how}; another one starts in ${lengthWords(againInMs)}.`),
  stalled: (pid, silentMs) =>
    complain(`Worker process ${pid} has not turned its event loop for ${lengthWords(silentMs)}; ending it.`),
}
