import type { Command } from 'commander'
import type { SettingName } from '../config/settings.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { makeLog } from '../engine/log.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { within } from '../service/service.ts'
import { urlOf } from './client.ts'
import { addExamples, addSettings, configOf, workSettings } from './flags.ts'
import { startHealth } from './health.ts'
import { loadJobs } from './load-jobs.ts'
import { loadOwners } from './load-owners.ts'
import { listenForEnd } from './signals.ts'
import { complain } from './terminal.ts'

const firstSettings: readonly SettingName[] = ['url', 'dataDir', 'httpHost', 'httpPort', 'healthPort', 'logLevel']

/** Adds `holdfast serve [module]`. */
export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .description('Serve the HTTP API and run a reaper. Every request needs an API key.')
    .argument(
      '[module]',
      'File that exports job definitions (defineJob). With it, inputs are validated before they are stored.',
    )
    .action((module: string | undefined, flags: Record<string, unknown>) => serve(module, flags))
  addSettings(command, workSettings, firstSettings)
  addExamples(command, [
    ['holdfast keys create --name me --scopes submit,read --all-tenants', 'create a key first'],
    ['holdfast serve', 'on 127.0.0.1:7420, with docs at /docs'],
    ['holdfast serve jobs.mjs --http-host 0.0.0.0 --http-port 8080', 'reachable from other machines'],
  ])
  command.addHelpText(
    'after',
    '\nStarts even if the database is down: /readyz says why it is not ready, until the database is reachable.',
  )
}

// a stop must not wait for an unresponsive database; with the default drain, this is still within the ten seconds of `docker stop`
const longestStopMs = 7_000

async function serve(module: string | undefined, flags: Record<string, unknown>): Promise<void> {
  const config = configOf(flags)
  const log = makeLog(config.logLevel)
  const jobs = module === undefined ? [] : await loadJobs(module)
  const owners = await loadOwners(config, module)
  const ending = listenForEnd({ hurriedBy: ['SIGINT', 'SIGTERM'], onHurry: () => process.exit(1) })
  // loaded here, because only a server needs it
  const { makeServing } = await import('../http/serve.ts')
  let hf: Holdfast | undefined
  const vital = {
    pulses: () => hf?.pulses() ?? [],
    async ready() {
      if (!hf) throw new HoldfastError('not_running', 'The database has not been reached yet.')
      await hf.ready()
    },
  }
  const serving = makeServing({
    config,
    log,
    jobs,
    reach: async () => connect({ ...config, url: await urlOf(config), jobs, owners, log }),
    onReady: (reached) => {
      hf = reached
      tellKeys(reached).catch(() => {})
    },
  })
  await serving.start()
  const health = await startHealth(config, vital, (error) => complain(messageOf(error)))
  complain(`Serving at ${serving.url()}, with docs at ${serving.url()}/docs. Press Ctrl-C to stop.`)
  await ending.asked
  complain('Stopping: answering pending requests and closing streams.')
  await health.stop()
  const isWhole = await within(config.httpDrainMs + longestStopMs, serving.stop())
  complain(
    isWhole ? 'Stopped.' : 'Stopped while the database was not responding: the last writes may or may not be stored.',
  )
}

async function tellKeys(hf: Holdfast): Promise<void> {
  complain('Ready: the database is reachable and its schema is up to date.')
  if ((await hf.keys.list({ good: true, limit: 1 })).length > 0) return
  complain(
    'No API keys exist yet, so every request is rejected. Create one: holdfast keys create --name me --scopes submit,read --all-tenants',
  )
}
