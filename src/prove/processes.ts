import type { GivenSettings } from '../config/config.ts'
import { pause } from '../service/service.ts'
import { eventually, TimedOut } from './deadline.ts'
import type { Member } from './member.ts'
import type { MemberPool } from './member-pool.ts'
import type { Effect } from './observed.ts'
import type { Answer, MemberReport, Order, Role } from './orders.ts'
import { type FaultProxy, openProxy } from './proxy.ts'
import type { Handling } from './reader.ts'
import { cellSettings, submitterSettings } from './settings.ts'
import type { Sightings } from './sightings.ts'
import { type Target, throughPort } from './target.ts'
import type { Traps } from './traps.ts'

/** A process of a cell, with a proxy of its own to the database. */
export interface CellProcess {
  readonly name: string
  readonly role: Role
  readonly member: Member
  readonly proxy: FaultProxy
  isUp: boolean
}

/** What it takes to run the processes of a cell. */
export interface ProcessesOptions {
  pool: MemberPool
  traps: Traps<CellProcess>
  sightings: Sightings
  target: () => Target
  /** The cell's database. */
  url: () => string
  /** A module with other kinds than the prover's own. */
  module: string | undefined
}

const startMs = 20_000
const stopMs = 10_000
const mostStderr = 4_000

/** The processes of a cell. One that dies is replaced, as a deployment would do. */
export class Processes {
  readonly effects: Effect[] = []
  /** The executions that their owner was asked to mark failed. */
  readonly marks: string[] = []
  /** What the event handlers did. */
  readonly handlings: Handling[] = []
  /** Which process sent which event as a webhook, in order. */
  readonly posted: { pid: number; event: string }[] = []
  /** The processes that were killed. */
  readonly killed = new Set<number>()
  /** What no fault excuses: processes that ended by themselves, or did not stop. */
  readonly problems: string[] = []
  readonly #options: ProcessesOptions
  readonly #byName = new Map<string, CellProcess>()
  /** Processes that were ended on purpose, and are not replaced. */
  readonly #ended = new Set<CellProcess>()
  readonly #starts = new Set<Promise<void>>()
  #isStopping = false

  constructor(options: ProcessesOptions) {
    this.#options = options
  }

  /** Starts a process. Resolves once it is up. */
  start(name: string, role: Role): Promise<void> {
    const start = this.#startUntilUp(name, role).finally(() => this.#starts.delete(start))
    this.#starts.add(start)
    return start
  }

  /** The process of that name, if it is up. */
  find(name: string): CellProcess | undefined {
    const process = this.#byName.get(name)
    return process?.isUp ? process : undefined
  }

  all(): CellProcess[] {
    return [...this.#byName.values()]
  }

  /** Stops a process cleanly and starts another in its place. */
  async replace(name: string): Promise<void> {
    const process = this.find(name)
    if (!process) return
    await this.#stopCleanly(process)
    await this.start(name, process.role)
  }

  /** Has the submitter carry out an order. Retries after a broken connection or a crash, as a careful client would. */
  order(order: Order): Promise<Answer> {
    return eventually(
      async () => {
        const answer = await this.find('submitter')?.member.ask(order)
        return answer && (answer.isDone || !answer.isConnectionError) ? answer : false
      },
      { ms: startMs, what: `the submitter had done ${JSON.stringify(order)}` },
    )
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.all().map((process) => (process.isUp ? this.#stopCleanly(process) : this.#kill(process))))
    // one that is still starting would go on to work on a database that another cell uses by then
    await Promise.allSettled(this.#starts)
    const left = this.all().filter((process) => !this.#ended.has(process))
    await Promise.all(left.map((process) => this.#kill(process)))
    await Promise.all(this.all().map(({ proxy }) => proxy.close()))
  }

  async #startUntilUp(name: string, role: Role): Promise<void> {
    const untilMs = performance.now() + startMs
    while (!this.#isStopping) {
      const process = await this.#spawn(name, role)
      if (this.#isStopping) return this.#kill(process)
      const answer = await process.member.ask(this.#startOrder(process))
      if (answer.isDone) {
        process.isUp = true
        return
      }
      await this.#kill(process)
      if (!answer.isConnectionError && !this.#isStopping)
        this.problems.push(`${name} could not start: ${answer.message}`)
      if (performance.now() > untilMs) throw new TimedOut(`${name} was up (last: ${answer.message})`, startMs)
      await pause(50)
    }
  }

  async #spawn(name: string, role: Role): Promise<CellProcess> {
    const { pool, traps, sightings, target } = this.#options
    const member = await pool.take()
    member.onReport = (report) => this.#record(member.pid, report)
    const watcher = traps.watcherFor(
      () => process,
      (statement) => sightings.add(statement, role),
    )
    const process: CellProcess = { name, role, member, proxy: await openProxy(target, watcher), isUp: false }
    this.#byName.set(name, process)
    void member.exited.then(({ code, signal }) => this.#exited(process, signal ?? `code ${code}`))
    return process
  }

  #exited(process: CellProcess, how: string): void {
    const { name, role, member, isUp: wasUp } = process
    process.isUp = false
    void process.proxy.close()
    const isKilled = how === 'SIGKILL'
    if (isKilled) this.killed.add(member.pid)
    if (this.#isStopping || this.#ended.has(process)) return
    if (!isKilled) this.problems.push(`${name} ended by itself (${how}): ${member.stderr().slice(-mostStderr)}`)
    if (wasUp) this.start(name, role).catch((error: Error) => this.problems.push(error.message))
  }

  #record(pid: number, report: MemberReport): void {
    if ('effect' in report) this.effects.push(report.effect)
    if ('marked' in report) this.marks.push(report.marked)
    if ('handling' in report) this.handlings.push(report.handling)
    if ('posted' in report) this.posted.push({ pid, event: report.posted })
  }

  async #kill(process: CellProcess): Promise<void> {
    this.#ended.add(process)
    process.isUp = false
    await process.member.kill('SIGKILL')
  }

  async #stopCleanly(process: CellProcess): Promise<void> {
    const { name, member, proxy } = process
    process.isUp = false
    const answer = await member.ask({ do: 'stop' }, stopMs)
    if (answer.isDone) this.#ended.add(process)
    else await this.#kill(process)
    if (!answer.isDone && !answer.isConnectionError) this.problems.push(`${name} did not stop: ${answer.message}`)
    await proxy.close()
    if (answer.isDone) this.#options.pool.giveBack(member)
  }

  #startOrder({ role, proxy }: CellProcess): Order {
    const settings: GivenSettings = role === 'submitter' ? submitterSettings : cellSettings
    return {
      do: 'start',
      role,
      url: throughPort(this.#options.url(), proxy.port),
      settings,
      module: this.#options.module,
    }
  }
}
