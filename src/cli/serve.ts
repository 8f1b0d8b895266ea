import type { Command } from 'commander'
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

/** Adds `holdfast serve [module]`. */
export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .description('Serve the HTTP API, with a reaper beside it. Every request needs an API key.')
    .argument(
      '[module]',
      'A file that exports what defineJob returned: inputs are then checked before they are stored.',
    )
    .action((module: string | undefined, flags: Record<string, unknown>) => serve(module, flags))
  addSettings(command, workSettings)
  addExamples(command, [
    ['holdfast keys create --name me --scopes submit,read --all-tenants', 'first: a key'],
    ['holdfast serve', 'on 127.0.0.1:7420; docs at /docs'],
    ['holdfast serve jobs.mjs --http-host 0.0.0.0 --http-port 8080', 'for other machines'],
  ])
  command.addHelpText(
    'after',
    '\nWithout a database it starts, says on /readyz why it is not ready, and becomes ready when there is one.',
  )
}

// what waits for a database that does not answer cannot be waited for; with the default drain, still within the ten seconds of `docker stop`
const longestStopMs = 7_000

async function serve(module: string | undefined, flags: Record<string, unknown>): Promise<void> {
  const config = configOf(flags)
  const log = makeLog(config.logLevel)
  const jobs = module === undefined ? [] : await loadJobs(module)
  const owners = await loadOwners(config, module)
  const ending = listenForEnd({ hurriedBy: ['SIGINT', 'SIGTERM'], onHurry: () => process.exit(1) })
  // loaded here: other commands should not wait for what only a server needs
  const { makeServing } = await import('../http/serve.ts')
  let hf: Holdfast | undefined
  const vital = {
    pulses: () => hf?.pulses() ?? [],
    async ready() {
      if (!hf) throw new HoldfastError('not_running', 'The database was not reached yet.')
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
  complain(`Serving at ${serving.url()}, with docs at ${serving.url()}/docs. Ctrl-C stops it.`)
  await ending.asked
  complain('Stopping: requests that wait are answered, streams are ended.')
  await health.stop()
  const isWhole = await within(config.httpDrainMs + longestStopMs, serving.stop())
  complain(
    isWhole
      ? 'Stopped.'
      : 'Stopped, although the database does not answer: what it was sent last may or may not be stored.',
  )
}

async function tellKeys(hf: Holdfast): Promise<void> {
  complain('Ready: the database answers, and its schema fits.')
  if ((await hf.keys.list({ good: true, limit: 1 })).length > 0) return
  complain(
    'There are no API keys yet, so nobody can come in. Make one: holdfast keys create --name me --scopes submit,read --all-tenants',
  )
}
