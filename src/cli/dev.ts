import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { flagOf } from '../config/settings.ts'
import { startEmbedded } from '../embedded/embedded.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { messageOf } from '../errors/errors.ts'
import { migrate } from '../schema/migrate.ts'
import { knownStages } from './event-lines.ts'
import { makeFeed } from './feed.ts'
import { addExamples, addSettings, configOf, isChosen, workSettings } from './flags.ts'
import { type Api, banner } from './format-dev.ts'
import { logFor, workerLine } from './format-log.ts'
import { formatDuration } from './format-time.ts'
import { healthOf, startHealth } from './health.ts'
import { sampleModule, submitSample } from './sample.ts'
import { type Ending, listenForEnd } from './signals.ts'
import type { SupervisorObserver } from './supervisor.ts'
import { complain, paint, print } from './terminal.ts'
import { makeWorkers } from './workers.ts'

/** Adds `holdfast dev [module]`. */
export function addDev(program: Command): void {
  const command = program
    .command('dev')
    .description(
      'Run everything on this machine: an embedded Postgres, worker processes, the HTTP API, and a live view of events.',
    )
    .argument('[module]', 'File that exports job definitions (defineJob). Default: a sample that reads documents.')
    .action((module: string | undefined, flags: Record<string, unknown>) => dev(module, flags))
  addSettings(command, workSettings)
  addExamples(command, [
    ['holdfast dev', 'run the sample, with data in .holdfast'],
    ['holdfast dev jobs.mjs', 'run your own jobs'],
    ['holdfast dev jobs.mjs --url postgres://user:password@host/database', 'on your own Postgres'],
  ])
}

/** What must be closed at the end, the latest first. */
type Closers = (() => Promise<unknown>)[]

async function dev(module: string | undefined, flags: Record<string, unknown>): Promise<void> {
  const config = configOf(flags)
  const closers: Closers = []
  const hurry = { now: () => {} }
  const ending = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => hurry.now() })
  let failure: { error: unknown } | undefined
  try {
    await run({ config, module, isPortChosen: isChosen('httpPort', flags), closers, ending, hurry })
  } catch (error) {
    // Ctrl-C also reaches the processes we start, so an interrupted start may fail
    if (!ending.signal.aborted) failure = { error }
  }
  if (!failure) print('\nStopping: waiting for running jobs to finish. Press Ctrl-C again to stop immediately.')
  for (const close of closers.reverse()) await close()
  if (failure) throw failure.error
  print('Stopped. Your data is kept for the next start.')
}

interface Run {
  config: Config
  module: string | undefined
  isPortChosen: boolean
  closers: Closers
  ending: Ending
  hurry: { now: () => void }
}

/** Starts everything, and returns once asked to end. What must be closed then is in `closers`. */
async function run({ config, module, isPortChosen, closers, ending, hurry }: Run): Promise<void> {
  const server = config.url ? undefined : await startServer(config, closers)
  const url = server?.url ?? (config.url as string)
  if (ending.signal.aborted) return
  const applied = await migrate(url)
  if (applied.length > 0) print(`Applied migrations: ${applied.join(', ')}.`)
  const hf = await connect({ ...config, url, log: logFor(print) })
  closers.push(() => hf.close())
  if (ending.signal.aborted) return
  await startFeed(hf, closers)
  const workers = makeWorkers({
    hf,
    module: module ?? sampleModule,
    isDatabaseOurs: server !== undefined,
    onLine: (pid, line) => tellWorkerLine(hf, pid, line),
    onError: (error) => complain(messageOf(error)),
    observer,
  })
  closers.push(() => workers.stop())
  const health = await startHealth(hf.config, healthOf(hf, workers), (error) => complain(messageOf(error)))
  closers.push(() => health.stop())
  hurry.now = () => workers.kill()
  const started = workers.start()
  if ((await Promise.race([started.then(() => 'started'), ending.asked.then(() => 'ending')])) === 'ending') {
    started.catch(() => {}) // it was interrupted, and may fail for that reason
    return
  }
  const api = await startApi(hf, closers, isPortChosen)
  for (const line of banner({ hf, api, dataDir: server?.dir, pids: workers.pids(), isSample: !module })) print(line)
  if (!module) await tellSample(hf)
  await ending.asked
}

/** Serves the API. If the default port is in use, it picks another one and says so; a port that was chosen explicitly is never replaced. */
async function startApi(hf: Holdfast, closers: Closers, isPortChosen: boolean): Promise<Api> {
  const { makeHttpServer } = await import('../http/server.ts')
  const needsKey = !isLoopback(hf.config.httpHost)
  const log = logFor(print)
  const open = async (config: Config) => {
    const server = makeHttpServer({ engine: () => hf, config, log, needsKey })
    closers.push(() => server.stop())
    await server.start()
    return { url: server.url(), needsKey }
  }
  try {
    return await open(hf.config)
  } catch (error) {
    if (isPortChosen) throw error
    const api = await open({ ...hf.config, httpPort: 0 })
    const { port } = new URL(api.url)
    print(
      `${paint(
        'yellow',
        `Port ${hf.config.httpPort} is in use; the API listens on port ${port} instead.`,
      )} To choose one: ${flagOf('httpPort')} <number>.`,
    )
    return api
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

const observer: SupervisorObserver = {
  started: () => {},
  ended: (pid, how, againInMs) =>
    print(paint('yellow', `Worker process ${pid} ${how}; restarting in ${formatDuration(againInMs)}.`)),
  stalled: (pid, silentMs) =>
    print(paint('yellow', `Worker process ${pid} has not responded for ${formatDuration(silentMs)}; killing it.`)),
  unready: (pid, startMs) =>
    print(paint('yellow', `Worker process ${pid} is still not ready after ${formatDuration(startMs)}; killing it.`)),
}

function tellWorkerLine({ config }: Holdfast, pid: number, line: string): void {
  const words = workerLine(pid, line, config.logLevel)
  if (words !== undefined) print(words)
}

async function startServer(config: Config, closers: Closers) {
  print(`Starting the embedded Postgres in ${config.dataDir} …`)
  const server = await startEmbedded({
    dir: config.dataDir,
    log: (line) => ['debug', 'trace'].includes(config.logLevel) && complain(line),
  })
  closers.push(() => server.stop())
  return server
}

async function startFeed(hf: Holdfast, closers: Closers): Promise<void> {
  const feed = makeFeed({
    hf,
    stagesOf: knownStages(hf),
    tell: print,
    onError: (error) => complain(`The live view could not read events: ${messageOf(error)}`),
  })
  await feed.start()
  closers.push(async () => {
    await feed.stop()
    await feed.flush().catch(() => {}) // the last events; without a database there are none to show
  })
}

async function tellSample(hf: Holdfast): Promise<void> {
  const { submitted, known } = await submitSample(hf)
  if (known.length > 0)
    print(
      `${known.length} documents were already submitted by an earlier start; their keys returned the existing jobs (see \`jobs\`).`,
    )
  print(`Submitted: ${submitted.join(', ')}.\n`)
}
