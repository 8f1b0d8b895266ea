import type { Command } from 'commander'
import type { Config } from '../config/config.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { messageOf } from '../errors/errors.ts'
import { withoutPassword } from '../errors/without-password.ts'
import { pause, within } from '../service/service.ts'
import { urlOf, withClient } from './client.ts'
import { addExamples, addJson, addSettings, clientSettings, configOf } from './flags.ts'
import { logFor } from './log-words.ts'
import { openScreen } from './screen.ts'
import { listenForEnd } from './signals.ts'
import { oneLine, paint, print } from './terminal.ts'
import { clockWords, lengthWords } from './time-words.ts'
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
    .description('Look on: queues, rates, workers, recovery, readers and webhooks, drawn anew each second.')
    .option('--once', 'Print one picture and end. So it is in a pipe, too.')
    .action((flags: Flags) => top(flags))
  addSettings(addJson(command), clientSettings)
  addExamples(command, [
    ['holdfast top', 'until q or Ctrl-C'],
    ['holdfast top --once', 'one picture, for a ticket'],
    ['holdfast top --json', 'for a program'],
  ])
}

const everyMs = 1_000
// keys come raw, so Ctrl-C is one of them and no signal
const quitKeys = ['q', 'Q', '\u0003']

async function top(flags: Flags): Promise<void> {
  const config = configOf({ ...flags })
  const isOnce = flags.once || flags.json || !process.stdout.isTTY
  if (!isOnce) return lookOn(config)
  const picture = await withClient(config, takeOne)
  if (flags.json) return print(JSON.stringify(picture, null, 2))
  for (const line of pictureLines(picture)) print(line)
}

/** One picture with rates, for which two are needed. */
async function takeOne(hf: Holdfast): Promise<Picture> {
  const camera = makeCamera()
  await camera.take(hf)
  await pause(everyMs)
  return camera.take(hf)
}

/** What is on the screen: the last picture, and since when there is no newer one. */
interface View {
  picture: Picture | null
  answeredMs: number
  trouble: string | null
}

/** Draws each second, whether or not the database answers. */
async function lookOn(config: Config): Promise<void> {
  const ending = listenForEnd({ hurriedBy: ['SIGINT'], onHurry: () => process.exit(1) })
  const quit = new AbortController()
  const signal = AbortSignal.any([ending.signal, quit.signal])
  const where = withoutPassword(await urlOf(config))
  const view: View = { picture: null, answeredMs: performance.now(), trouble: null }
  // what is wrong from the start is said without taking the terminal over
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
    // who quits while the database is silent does not wait for it
    if (hf && !(await within(everyMs, hf.close()))) process.exit(0)
  }
}

/** Takes the next picture. If that fails the connection is made anew: an embedded Postgres comes back at another port. */
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

// a busy database may take a while; longer than this and somebody wonders
const silentMs = 3_000

function viewLines({ picture, answeredMs, trouble }: View, where: string): string[] {
  const forMs = performance.now() - answeredMs
  const silence = forMs > silentMs ? `The database has not answered for ${lengthWords(forMs)}.` : null
  const worry = trouble ? `${trouble} Trying again; this is ${lengthWords(forMs)} old.` : silence
  const title = `${paint('bold', 'holdfast top')}  ${where}  ${picture ? clockWords(picture.at).slice(0, 8) : ''}`
  const keys = paint('dim', 'q quits')
  return [`${title}  ${keys}`, worry ? paint('red', worry) : '', ...(picture ? pictureLines(picture) : [])]
}
