import type { Command } from 'commander'
import type { SettingName } from '../config/settings.ts'
import type { Holdfast } from '../engine/engine.ts'
import { makeLog } from '../engine/log.ts'
import { messageOf } from '../errors/errors.ts'
import { withClient } from './client.ts'
import { addExamples, addSettings, configOf, workSettings } from './flags.ts'
import { ladderLines } from './format-ladder.ts'
import { formatDuration } from './format-time.ts'
import { healthOf, startHealth } from './health.ts'
import { listenForEnd } from './signals.ts'
import type { SupervisorObserver } from './supervisor.ts'
import { complain } from './terminal.ts'
import { makeWorkers } from './workers.ts'

const firstSettings: readonly SettingName[] = [
  'url',
  'dataDir',
  'processes',
  'concurrency',
  'queues',
  'drainMs',
  'healthPort',
  'logLevel',
]

/** Adds `holdfast work <module>`. */
export function addWork(program: Command): void {
  const command = program
    .command('work')
    .description('Run worker processes for the jobs that a module exports. Crashed processes are restarted.')
    .argument('<module>', 'File that exports job definitions (defineJob), by name or in a default list.')
    .action((module: string, flags: Record<string, unknown>) => work(module, flags))
  addSettings(command, workSettings, firstSettings)
  addExamples(command, [
    ['holdfast work jobs.mjs', 'with settings from the environment'],
    ['holdfast work jobs.mjs --processes 4 --concurrency 20', 'up to 80 handlers at once'],
    ['holdfast work jobs.mjs --queues mail,reports', 'only these queues'],
  ])
  command.addHelpText(
    'after',
    '\nOn SIGTERM or Ctrl-C, workers stop claiming jobs, let handlers finish within --drain-ms, and release the rest. A second signal stops them immediately.',
  )
}

async function work(module: string, flags: Record<string, unknown>): Promise<void> {
  const config = configOf(flags)
  await withClient(config, (hf) => workUntilAsked(hf, module), makeLog(config.logLevel))
}

async function workUntilAsked(hf: Holdfast, module: string): Promise<void> {
  const workers = makeWorkers({ hf, module, isDatabaseOurs: false, onError, observer })
  const ending = listenForEnd({
    hurriedBy: ['SIGINT', 'SIGTERM'],
    onHurry: () => {
      complain('Killing the worker processes.')
      process.exitCode = 1
      workers.kill()
    },
  })
  const health = await startHealth(hf.config, healthOf(hf, workers), onError)
  if (health.url) complain(`Health checks at ${health.url}/livez and /readyz.`)
  const started = workers.start()
  await Promise.race([started.then(() => tellLadder(hf)), ending.asked])
  await ending.asked
  complain('Stopping: waiting for running jobs to finish. Signal again to stop immediately.')
  await workers.stop()
  await health.stop()
  await started.catch(() => {}) // a start that was interrupted may fail for that reason
  complain('Stopped.')
}

function tellLadder({ config }: Holdfast): void {
  complain('A job that loses its worker is recovered within:')
  for (const line of ladderLines(config)) complain(`  ${line}`)
}

function onError(error: unknown): void {
  complain(messageOf(error))
}

const observer: SupervisorObserver = {
  started: (pid) => complain(`Worker process ${pid} is ready.`),
  ended: (pid, how, againInMs) => complain(`Worker process ${pid} ${how}; restarting in ${formatDuration(againInMs)}.`),
  stalled: (pid, silentMs) =>
    complain(`Worker process ${pid} has not responded for ${formatDuration(silentMs)}; killing it.`),
  unready: (pid, startMs) =>
    complain(`Worker process ${pid} is still not ready after ${formatDuration(startMs)}; killing it.`),
}
