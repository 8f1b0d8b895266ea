import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { defineJob, type SubscribeOptions } from 'holdfast'
import { onTestFinished } from 'vitest'
import { envNameOf, type SettingName, settingNames } from '#holdfast/config/settings'
import { until } from '../until.ts'

/** A line that a member told. */
export type Line = Record<string, unknown>

/** A real process that works, reaps or delivers; see member.mjs. */
export interface Member {
  readonly pid: number
  /** Its session, if it works. */
  readonly session: number
  readonly lines: Line[]
  /** Waits for the first line that the test is after, whenever it was told. */
  heard(what: string, is: (line: Line) => boolean, withinMs?: number): Promise<Line>
  /** The places in the log of the events whose handler it has started, in order. */
  events(): number[]
  /** The ids whose handlers it has started, with their attempts. */
  started(): { id: string; attempt: number; stage: string }[]
  order(order: Record<string, unknown>): void
  /** Its metrics, in the text format of Prometheus. */
  metrics(): Promise<string>
  /** Resolves when it is gone, however it went. */
  readonly ended: Promise<unknown>
  /** Sends a signal; a deadly one is waited for. */
  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): Promise<void>
  /** Asks it to stop in good order, and waits until it is gone. */
  stop(): Promise<void>
}

/** How to start a member. */
export interface MemberOptions {
  url: string
  role?: 'work' | 'reap' | 'read' | 'deliver' | 'client'
  /** What a reader reads. */
  read?: { group: string; options?: SubscribeOptions }
  kinds?: string[]
  supervisor?: string
  /** Whether its clock is six minutes ahead: receivers allow for five. */
  isAhead?: boolean
  settings?: Partial<Record<SettingName, string | number | boolean>>
}

/** Settings under which a recovery takes moments instead of seconds. */
export const swift = {
  logLevel: 'silent',
  heartbeatMs: 100,
  lostAfterMs: 500,
  leaseMs: 1_500,
  abortMarginMs: 100,
  leaderLeaseMs: 600,
  leaderRenewMs: 150,
  sweepMs: 50,
  pollMs: 200,
  holdMs: 500,
  timeoutGraceMs: 100,
  backoffBaseMs: 10,
  drainMs: 5_000,
  readerLeaseMs: 1_000,
  readerBeatMs: 100,
} as const

const nothing = () => {}
/** The kinds that members know, for whoever submits. Their handlers are in member.mjs. */
export const memberKinds = {
  hold: defineJob('hold', { run: nothing }),
  staged: defineJob('staged', { run: nothing }),
  stubborn: defineJob('stubborn', { run: nothing }),
  block: defineJob('block', { run: nothing }),
  flaky: defineJob('flaky', { run: nothing }),
  fan: defineJob('fan', { crashBudget: 20, run: nothing }),
  killer: defineJob('killer', { run: nothing }),
  poison: defineJob('poison', { run: nothing }),
  steady: defineJob('steady', { run: nothing }),
  refined: defineJob('refined', { crashBudget: 1, run: nothing }),
}

/** Starts a member and waits until it works. It dies with the test. */
export async function startMember(options: MemberOptions): Promise<Member> {
  const { role = 'work', kinds, read } = options
  const script = fileURLToPath(new URL('member.mjs', import.meta.url))
  const ahead = options.isAhead ? ['--import', new URL('ahead.mjs', import.meta.url).href] : []
  const child = spawn(process.execPath, [...ahead, script, JSON.stringify({ role, kinds, read })], {
    env: environment(options),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines: Line[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  child.stdin.on('error', () => {}) // an order to a process that has just died
  const exited = once(child, 'exit')
  const isGone = () => child.exitCode !== null || child.signalCode !== null
  let asked = 0
  const member = {
    pid: child.pid as number,
    lines,
    ended: exited,
    heard: (what: string, is: (line: Line) => boolean, withinMs?: number) =>
      until(() => lines.find(is), `${what} (told: ${JSON.stringify(lines.at(-1))})`, withinMs),
    started: () =>
      lines.flatMap((line) => (line.started ? [line.started as { id: string; attempt: number; stage: string }] : [])),
    events: () => lines.flatMap((line) => (line.event ? [(line.event as { seq: number }).seq] : [])),
    order: (order: Record<string, unknown>) => void child.stdin.write(`${JSON.stringify(order)}\n`),
    async metrics() {
      asked += 1
      member.order({ ask: 'metrics' })
      const answers = () => lines.filter((line) => line.metrics)
      return String((await until(() => answers().length >= asked && answers().at(-1), 'the metrics'))?.metrics)
    },
    async kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM') {
      if (isGone()) return
      child.kill(signal)
      if (signal === 'SIGKILL') await exited
    },
    async stop() {
      member.order({ stop: true })
      await exited
    },
  }
  onTestFinished(() => member.kill('SIGKILL'))
  const ready = await Promise.race([
    member.heard('the member is ready', (line) => line.ready !== undefined, 20_000),
    exited.then(() => Promise.reject(new Error('The member ended before it was ready.'))),
  ])
  return { ...member, session: (ready.ready as { session: number }).session }
}

function environment({ url, supervisor, settings = {} }: MemberOptions): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('HOLDFAST_'))
  const given = settingNames.flatMap((name) =>
    settings[name] === undefined ? [] : [[envNameOf(name), String(settings[name])]],
  )
  return {
    ...Object.fromEntries([...inherited, ...given]),
    HOLDFAST_URL: url,
    ...(supervisor && { MEMBER_SUPERVISOR: supervisor }),
  }
}
