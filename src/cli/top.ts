import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { messageOf } from '../errors/errors.ts'
import { withoutPassword } from '../errors/without-password.ts'
import { pause, within } from '../service/service.ts'
import { urlOf, withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { logFor } from './format-log.ts'
import { formatClock, formatDuration } from './format-time.ts'
import { openScreen } from './screen.ts'
import { listenForEnd } from './signals.ts'
import { oneLine, paint, print } from './terminal.ts'
import { pictureLines } from './top-lines.ts'
import { type Camera, makeCamera, type Picture } from './top-picture.ts'

interface Flags {
  once?: true
  json?: true
}

/** Adds `holdfast top`. */
export function addTop(program: Command): void {
  const command = program
    .command('top')
    .description('Live view of queues, rates, workers, recovery, event groups and webhooks, refreshed every second.')
    .option('--once', 'Print one snapshot and exit. Default if stdout is not a terminal.')
    .action((flags: Flags) => top(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast top', 'until q or Ctrl-C'],
    ['holdfast top --once', 'one snapshot, to paste into a ticket'],
    ['holdfast top --json', 'one snapshot, as JSON'],
  ])
}

const everyMs = 1_000
// in raw mode, Ctrl-C is a key and not a signal
const quitKeys = ['q', 'Q', '\u0003']

async function top(flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const isOnce = flags.once || flags.json || !process.stdout.isTTY
  if (!isOnce) return lookOn(config)
  const picture = await withClient(config, takeOne)
  if (flags.json) return print(JSON.stringify(picture, null, 2))
  for (const line of pictureLines(picture)) print(line)
}

/** Takes a picture with rates, which needs two of them. */
async function takeOne(hf: Holdfast): Promise<Picture> {
  const camera = makeCamera()
  await camera.take(hf)
  await pause(everyMs)
  return camera.take(hf)
}

/** What is on the screen: the last picture, and since when there has been no newer one. */
interface View {
  picture: Picture | null
  answeredMs: number
  trouble: string | null
}

/** Draws every second, whether or not the database responds. */
async function lookOn(config: Config): Promise<void> {
  const ending = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  const quit = new AbortController()
  const signal = AbortSignal.any([ending.signal, quit.signal])
  const where = withoutPassword(await urlOf(config))
  const view: View = { picture: null, answeredMs: performance.now(), trouble: null }
  // an error at the start is reported without taking over the terminal
  let hf: Holdfast | undefined = await reach(config)
  const draw = () => screen.draw(viewLines(view, where))
  const onKey = (key: string) => void (quitKeys.includes(key) && quit.abort())
  const screen = openScreen({ input: process.stdin, output: process.stdout, onKey, onResize: draw })
  const gone = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  const clock = setInterval(draw, everyMs)
  const camera = makeCamera()
  try {
    while (!signal.aborted) {
      const looking = lookOnce(config, hf, camera, view).then((reached) => {
        hf = reached
      })
      await Promise.race([looking, gone])
      draw()
      await pause(everyMs, signal)
    }
  } finally {
    clearInterval(clock)
    screen.leave()
    // quitting must not wait for an unresponsive database
    if (hf && !(await within(everyMs, hf.close()))) process.exit(0)
  }
}

/** Takes the next picture. If that fails, it reconnects: a restarted embedded Postgres listens on another port. */
async function lookOnce(config: Config, hf: Holdfast | undefined, camera: Camera, view: View) {
  let reached = hf
  try {
    reached ??= await reach(config)
    view.picture = await camera.take(reached)
    view.answeredMs = performance.now()
    view.trouble = null
    return reached
  } catch (error) {
    view.trouble = oneLine(messageOf(error))
    await reached?.close().catch(() => {})
    return undefined
  }
}

async function reach(config: Config): Promise<Holdfast> {
  return connect({ ...config, url: await urlOf(config), log: logFor(() => {}) })
}

// a busy database may take a while; after this time, say that it does not respond
const silentMs = 3_000

function viewLines({ picture, answeredMs, trouble }: View, where: string): string[] {
  const forMs = performance.now() - answeredMs
  const silence = forMs > silentMs ? `The database has not answered for ${formatDuration(forMs)}.` : null
  const worry = trouble ? `${trouble} Retrying; this snapshot is ${formatDuration(forMs)} old.` : silence
  const title = `${paint('bold', 'holdfast top')}  ${where}  ${picture ? formatClock(picture.at).slice(0, 8) : ''}`
  const keys = paint('dim', 'press q to quit')
  return [`${title}  ${keys}`, worry ? paint('red', worry) : '', ...(picture ? pictureLines(picture) : [])]
}
