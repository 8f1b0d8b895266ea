import { isFinal, type State } from '../job/machine.ts'
import { Barriers } from './barriers.ts'
import { Bus } from './bus.ts'
import type { JobRow } from './cell-database.sql.ts'
import { type Ask, CellDatabase } from './cell-database.ts'
import { eventually } from './deadline.ts'
import type { WebhookOrder } from './orders.ts'
import type { CellProcess, Processes } from './processes.ts'
import type { Random } from './random.ts'
import type { Sightings } from './sightings.ts'

/** What it takes to make the context of a scenario. */
export interface ContextOptions {
  processes: Processes
  sightings: Sightings
  /** The cell's database. */
  url: () => string
  random: Random
}

/** Everything that a scenario uses: its processes, the jobs that they acknowledged, and direct access to its database. */
export class ScenarioContext {
  readonly processes: Processes
  readonly barriers: Barriers
  readonly bus: Bus
  /** Runs a statement on the cell's database, past all proxies. */
  readonly ask: Ask
  readonly problems: string[] = []
  /** The process that the cell's fault holds at this moment. It may depend on the others. */
  stricken: CellProcess | undefined
  readonly #random: Random
  readonly #sightings: Sightings
  readonly #database: CellDatabase
  readonly #acknowledged = new Map<string, { id: string; kind: string }>()
  #lastKey = 0

  constructor({ processes, sightings, url, random }: ContextOptions) {
    this.processes = processes
    this.#sightings = sightings
    this.#random = random
    this.#database = new CellDatabase(url)
    this.ask = this.#database.ask
    this.barriers = new Barriers(processes, this.ask)
    this.bus = new Bus(processes, this.ask)
  }

  /** Acknowledged jobs by their idempotency keys. */
  get acknowledged(): ReadonlyMap<string, { id: string; kind: string }> {
    return this.#acknowledged
  }

  shuffled<T>(items: readonly T[]): T[] {
    return this.#random.shuffled(items)
  }

  /** Submits a job. Returns its id, once acknowledged. */
  submit(kind: string, webhook?: WebhookOrder): Promise<string> {
    return this.#submit(kind, [this.#newKey(kind)], webhook)
  }

  /** Submits jobs in bulk. Returns the id of the first. */
  submitMany(kind: string, count: number): Promise<string> {
    return this.#submit(
      kind,
      Array.from({ length: count }, () => this.#newKey(kind)),
    )
  }

  /** Submits a job once more, with the same key. */
  async submitAgain(id: string): Promise<void> {
    const [key, { kind }] = [...this.#acknowledged].find(([, job]) => job.id === id) as [string, { kind: string }]
    await this.#submit(kind, [key])
  }

  /** The first acknowledged job of a kind. */
  idOf(kind: string): string {
    return this.idsOf(kind)[0] as string
  }

  /** All acknowledged jobs of a kind. */
  idsOf(kind: string): string[] {
    return [...this.#acknowledged.values()].filter((job) => job.kind === kind).map(({ id }) => id)
  }

  /** Cancels or redoes a job. A job in one of the `done` states was moved by an earlier try whose response was lost. */
  async move(move: 'cancel' | 'redo', id: string, done: State[]): Promise<void> {
    const answer = await this.processes.order({ do: move, id })
    if (answer.isDone || (answer.code === 'move_illegal' && done.some((state) => state === answer.state))) return
    throw new Error(`A ${move} of job ${id} was refused: ${answer.message}`)
  }

  jobs(): Promise<JobRow[]> {
    return this.#database.jobs()
  }

  async areFinal(ids: string[]): Promise<boolean> {
    const jobs = await this.jobs()
    return ids.every((id) => jobs.some((job) => job.id === id && isOver(job)))
  }

  async untilFinal(ids: string[], ms: number): Promise<void> {
    await eventually(() => this.areFinal(ids), { ms, what: `jobs were final: ${ids.join(', ')}` })
  }

  /** Whether any process has sent a statement. */
  hasSent(statement: string): boolean {
    return this.#sightings.has(statement)
  }

  async untilSent(statement: string, ms: number): Promise<void> {
    await eventually(() => this.hasSent(statement), { ms, what: `${statement} was sent` })
  }

  /** Locks all live jobs and barriers, as a transaction of another program can. Returns how to release them. */
  lockRows(): Promise<() => Promise<void>> {
    return this.#database.lockRows()
  }

  async close(): Promise<void> {
    await this.bus.close()
    await this.#database.close()
  }

  #newKey(kind: string): string {
    this.#lastKey += 1
    return `${kind}-${this.#lastKey}`
  }

  async #submit(kind: string, keys: string[], webhook?: WebhookOrder): Promise<string> {
    const [key] = keys as [string]
    const one = { do: 'submit', kind, key, ...(webhook && { webhook }) } as const
    const answer = await this.processes.order(keys.length === 1 ? one : { do: 'submit-many', kind, keys })
    if (!answer.isDone) throw new Error(`A submit of ${kind} was refused: ${answer.message}`)
    this.#acknowledge(kind, keys, answer.values)
    return answer.values[0] as string
  }

  #acknowledge(kind: string, keys: string[], ids: string[]): void {
    for (const [index, key] of keys.entries()) {
      const id = ids[index] as string
      const earlier = this.#acknowledged.get(key)
      if (earlier && earlier.id !== id) this.problems.push(`the key ${key} was given two jobs, ${earlier.id} and ${id}`)
      this.#acknowledged.set(key, { id, kind })
    }
  }
}

/** Whether nothing automatic moves this job any more. */
export function isOver(job: { state: string }): boolean {
  return isFinal(job.state as State)
}
