import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { flagOf } from '../config/settings.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { messageOf } from '../errors/errors.ts'
import { startEmbedded } from '../store/embedded/embedded.ts'
import { migrate } from '../store/migrate.ts'
import { type Api, banner } from './dev-words.ts'
import { knownStages } from './event-lines.ts'
import { makeFeed } from './feed.ts'
import { addExamples, addSettings, configOf, isChosen, workSettings } from './flags.ts'
import { healthOf, startHealth } from './health.ts'
import { logFor, workerLine } from './log-words.ts'
import { sampleModule, submitSample } from './sample.ts'
import { type Ending, listenForEnd } from './signals.ts'
import type { SupervisorNews } from './supervisor.ts'
import { complain, paint, print } from './terminal.ts'
import { lengthWords } from './time-words.ts'
import { makeWorkers } from './workers.ts'

/** Adds `holdfast dev [module]`. */
export function addDev(program: Command): void {
  const command = program
    .command('dev')
    .description('Run everything here: an embedded Postgres, worker processes, and a live view of what happens.')
    .argument('[module]', 'A file that exports what defineJob returned. Without it, a sample that reads documents.')
    .action((module: string | undefined, flags: Record<string, unknown>) => dev(module, flags))
  addSettings(command, workSettings)
  addExamples(command, [
    ['holdfast dev', 'the sample, with its data in .holdfast'],
    ['holdfast dev jobs.mjs', 'kinds of yours'],
    ['holdfast dev jobs.mjs --url postgres://user:password@host/database', 'on a Postgres of yours'],
  ])
}

/** What must be let go of in the end, the latest first. */
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
    // Ctrl-C reaches what we start as well, so a start that was cut short may well fail
    if (!ending.signal.aborted) failure = { error }
  }
  if (!failure) print('\nStopping: the worker processes finish what they run. Ctrl-C again ends them at once.')
  for (const close of closers.reverse()) await close()
  if (failure) throw failure.error
  print('Stopped. The data stays; the next start finds it again.')
}

interface Run {
  config: Config
  module: string | undefined
  isPortChosen: boolean
  closers: Closers
  ending: Ending
  hurry: { now: () => void }
}

/** Brings everything up and answers when the end is wished for. What it leaves behind is in `closers`. */
async function run({ config, module, isPortChosen, closers, ending, hurry }: Run): Promise<void> {
  const server = config.url ? undefined : await startServer(config, closers)
  const url = server?.url ?? (config.url as string)
  if (ending.signal.aborted) return
  const applied = await migrate(url)
  if (applied.length > 0) print(`Laid the schema: ${applied.join(', ')}.`)
  const hf = await connect({ ...config, url, log: logFor(print) })
  closers.push(() => hf.close())
  if (ending.signal.aborted) return
  await startFeed(hf, closers)
  const workers = makeWorkers({
    hf,
    module: module ?? sampleModule,
    isDatabaseOurs: server !== undefined,
    onLine: (pid, line) => tellWorkerLine(hf, pid, line),
    onTrouble: (error) => complain(messageOf(error)),
    news,
  })
  closers.push(() => workers.stop())
  const health = await startHealth(hf.config, healthOf(hf, workers), (error) => complain(messageOf(error)))
  closers.push(() => health.stop())
  hurry.now = () => workers.kill()
  const started = workers.start()
  if ((await Promise.race([started.then(() => 'started'), ending.asked.then(() => 'ending')])) === 'ending') {
    started.catch(() => {}) // cut short, and for that reason failed
    return
  }
  const api = await startApi(hf, closers, isPortChosen)
  for (const line of banner({ hf, api, dataDir: server?.dir, pids: workers.pids(), isSample: !module })) print(line)
  if (!module) await tellSample(hf)
  await ending.asked
}

/** Serves the API. If another program has the usual port, any other will do, and we say so; a port that somebody chose is taken or refused. */
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
      paint(
        'yellow',
        `Port ${hf.config.httpPort} is in use by another program, so the API listens on ${port} instead.`,
      ) + ` To choose one: ${flagOf('httpPort')} <number>.`,
    )
    return api
  }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host)
}

const news: SupervisorNews = {
  started: () => {},
  ended: (pid, how, againInMs) =>
    print(paint('yellow', `Worker process ${pid} ${how}; another one starts in ${lengthWords(againInMs)}.`)),
  stalled: (pid, silentMs) =>
    print(
      paint('yellow', `Worker process ${pid} has not turned its event loop for ${lengthWords(silentMs)}; ending it.`),
    ),
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
    onTrouble: (error) => complain(`The live view could not look: ${messageOf(error)}`),
  })
  await feed.start()
  closers.push(async () => {
    await feed.stop()
    await feed.flush().catch(() => {}) // the last events; without a database there is nothing to tell
  })
}

async function tellSample(hf: Holdfast): Promise<void> {
  const { submitted, known } = await submitSample(hf)
  if (known.length > 0)
    print(
      `Known already: ${known.length} documents of an earlier start; their keys led to the same jobs (see \`jobs\`).`,
    )
  print(`Submitted: ${submitted.join(', ')}.\n`)
}
