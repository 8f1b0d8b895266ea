import { fileURLToPath } from 'node:url'
import { defineJob, type SubscribeOptions } from 'holdfast'
import { onTestFinished } from 'vitest'
import { envNameOf, type SettingName, settingNames } from '#holdfast/config/settings'
import { ControlledProcess } from '#holdfast/prove/controlled-process'
import { until } from '../until.ts'

/** Something that a member reported. */
export type Line = Record<string, unknown>

/** How to start a member. */
export interface MemberOptions {
  url: string
  role?: 'work' | 'reap' | 'read' | 'deliver' | 'client'
  /** What a reader reads. */
  read?: { group: string; options?: SubscribeOptions }
  kinds?: string[]
  supervisor?: string
  /** Whether its clock is six minutes ahead. Receivers of webhooks tolerate five. */
  isAhead?: boolean
  settings?: Partial<Record<SettingName, string | number | boolean>>
  env?: Record<string, string>
}

const program = fileURLToPath(new URL('member.mjs', import.meta.url))
/** Starting a process takes long on a busy machine. */
const patienceMs = 60_000
const clockAhead = new URL('clock-ahead.mjs', import.meta.url).href

/** A real process that works, reaps, reads or delivers; see member.mjs. */
export class Member extends ControlledProcess<Line> {
  readonly lines: Line[] = []

  constructor(options: MemberOptions) {
    const { role = 'work', kinds, read, isAhead } = options
    super(program, {
      args: [JSON.stringify({ role, kinds, read })],
      execArgv: isAhead ? ['--import', clockAhead] : [],
      env: environmentOf(options),
      stderr: 'inherit',
    })
    this.onMessage = (line) => this.lines.push(line)
  }

  /** The session that it started with, if it works. */
  get session(): number {
    const [ready] = this.lines.flatMap((line) => (line.ready ? [line.ready as { session: number }] : []))
    return (ready as { session: number }).session
  }

  /** Waits for the first line that matches, even if it was reported before. */
  heard(what: string, is: (line: Line) => boolean, withinMs?: number): Promise<Line> {
    return until(
      () => this.lines.find(is),
      () => `${what} (last line: ${JSON.stringify(this.lines.at(-1))})`,
      withinMs,
    )
  }

  /** Waits until it runs the job, at this attempt or a later one. */
  async runs(id: string, attempt = 1): Promise<void> {
    const isIt = () => this.started().some((run) => run.id === id && run.attempt >= attempt)
    await until(isIt, `attempt ${attempt} of job ${id} runs`, patienceMs)
  }

  /** The attempts whose handlers it has started, in order. */
  started(): { id: string; attempt: number; stage: string }[] {
    return this.lines.flatMap(({ started }) =>
      started ? [started as { id: string; attempt: number; stage: string }] : [],
    )
  }

  /** The sequence numbers of the events whose handler it has started, in order. */
  events(): number[] {
    return this.lines.flatMap(({ event }) => (event ? [(event as { seq: number }).seq] : []))
  }

  order(order: Record<string, unknown>): void {
    this.send(order)
  }

  /** Its metrics, in the text format of Prometheus. */
  async metrics(): Promise<string> {
    const answers = () => this.lines.filter(({ metrics }) => metrics)
    const before = answers().length
    this.order({ ask: 'metrics' })
    return String((await until(() => answers()[before], 'the metrics')).metrics)
  }

  /** Stops it cleanly, and waits until it has ended. */
  async stop(): Promise<void> {
    this.order({ stop: true })
    await this.exited
  }
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
/** The kinds of the members, for tests that submit. Their handlers are in member.mjs. */
export const memberKinds = {
  hold: defineJob('hold', { run: nothing }),
  single: defineJob('single', { limit: { concurrency: 1 }, run: nothing }),
  staged: defineJob('staged', { run: nothing }),
  stubborn: defineJob('stubborn', { run: nothing }),
  block: defineJob('block', { run: nothing }),
  blocking: defineJob('blocking', { run: nothing }),
  flaky: defineJob('flaky', { run: nothing }),
  snoozy: defineJob('snoozy', { run: nothing }),
  approval: defineJob('approval', { run: nothing }),
  fan: defineJob('fan', { crashBudget: 20, run: nothing }),
  killer: defineJob('killer', { run: nothing }),
  poison: defineJob('poison', { run: nothing }),
  steady: defineJob('steady', { run: nothing }),
  refined: defineJob('refined', { crashBudget: 1, run: nothing }),
}

/** Starts a member and waits until it is ready. It ends with the test. */
export async function startMember(options: MemberOptions): Promise<Member> {
  const member = new Member(options)
  onTestFinished(() => member.kill('SIGKILL'))
  await Promise.race([
    member.heard('the member is ready', (line) => line.ready !== undefined, patienceMs),
    member.exited.then(() => Promise.reject(new Error('The member ended before it was ready.'))),
  ])
  return member
}

function environmentOf({ url, supervisor, settings = {}, env }: MemberOptions): NodeJS.ProcessEnv {
  const given = settingNames.flatMap((name) =>
    settings[name] === undefined ? [] : [[envNameOf(name), String(settings[name])]],
  )
  return {
    ...Object.fromEntries(given),
    HOLDFAST_URL: url,
    ...(supervisor && { MEMBER_SUPERVISOR: supervisor }),
    ...env,
  }
}
