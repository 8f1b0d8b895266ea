import pg from 'pg'
import { isFinal, type State } from '../job/machine.ts'
import { connectionOptions, isConnectionError } from '../store/connection.ts'
import type { Statement } from '../store/sql.ts'
import { runnerIn } from '../store/store.ts'
import { type CaseBarriers, makeCaseBarriers } from './barriers.ts'
import { type CaseBus, makeCaseBus } from './bus.ts'
import { holdBarriers, holdJobs, type StandingRow, standing } from './case.sql.ts'
import type { Crew } from './crew.ts'
import { eventually } from './deadline.ts'
import type { WebhookOrder } from './orders.ts'
import type { Random } from './random.ts'

/** One cell under way: its processes, the jobs that they acknowledged, and a look at its database past all proxies. */
export interface Case {
  readonly crew: Crew
  /** Acknowledged jobs by their keys. */
  readonly acknowledged: ReadonlyMap<string, { id: string; kind: string }>
  readonly barriers: CaseBarriers
  readonly bus: CaseBus
  shuffled<T>(items: readonly T[]): T[]
  /** Submits a job and answers its id, once acknowledged. */
  submit(kind: string, webhook?: WebhookOrder): Promise<string>
  submitMany(kind: string, count: number): Promise<string>
  /** Submits the same key once more. */
  submitAgain(id: string): Promise<void>
  /** The first acknowledged job of a kind. */
  idOf(kind: string): string
  /** All acknowledged jobs of a kind. */
  idsOf(kind: string): string[]
  /** Cancels or redoes; a job found in one of these states was moved by an earlier try whose answer was lost. */
  move(move: 'cancel' | 'redo', id: string, done: State[]): Promise<void>
  areFinal(ids: string[]): Promise<boolean>
  untilFinal(ids: string[], ms: number): Promise<void>
  /** Whether somebody has sent a statement. */
  hasSent(statement: string): boolean
  /** Waits until somebody has sent a statement. */
  untilSent(statement: string, ms: number): Promise<void>
  jobs(): Promise<StandingRow[]>
  /** Locks all live jobs and barriers, as a stranger's transaction may; answers how to let them go. */
  hold(): Promise<() => Promise<void>>
  ask<P, Row>(statement: Statement<P, Row>, params: P): Promise<Row[]>
  readonly troubles: string[]
  close(): Promise<void>
}

/** Whether nothing automatic moves this job any more. */
export function isOver(job: { state: string }): boolean {
  return isFinal(job.state as State)
}

/** Makes the case of a cell. */
export function makeCase(options: {
  crew: Crew
  url: () => string
  random: Random
  seen: ReadonlyMap<string, unknown>
}): Case {
  const { crew, random } = options
  const acknowledged = new Map<string, { id: string; kind: string }>()
  const troubles: string[] = []
  let pool: { url: string; connections: pg.Pool } | undefined
  let lastKey = 0

  /** Connections past all proxies, to where the server is at this moment. */
  function direct(): pg.Pool {
    const url = options.url()
    if (pool?.url === url) return pool.connections
    pool?.connections.end().catch(() => {})
    const connections = new pg.Pool({ ...connectionOptions(url), max: 2, query_timeout: 10_000 })
    connections.on('error', () => {}) // replaced when next needed
    pool = { url, connections }
    return connections
  }

  async function ask<P, Row>(statement: Statement<P, Row>, params: P): Promise<Row[]> {
    return eventually(
      async () => {
        try {
          return await runnerIn(direct()).run(statement, params)
        } catch (error) {
          if (isConnectionError(error)) return undefined // the server is being restarted
          throw error
        }
      },
      { ms: 30_000, what: `the database had answered to ${statement.name}` },
    )
  }

  function acknowledge(kind: string, keys: string[], ids: string[]): void {
    for (const [index, key] of keys.entries()) {
      const id = ids[index] as string
      const earlier = acknowledged.get(key)
      if (earlier && earlier.id !== id) troubles.push(`the key ${key} was given two jobs, ${earlier.id} and ${id}`)
      acknowledged.set(key, { id, kind })
    }
  }

  async function submitKeys(kind: string, keys: string[], webhook?: WebhookOrder): Promise<string> {
    const [key] = keys as [string]
    const one = { do: 'submit', kind, key, ...(webhook && { webhook }) } as const
    const answer = await crew.order(keys.length === 1 ? one : { do: 'submit-many', kind, keys })
    if (!answer.isDone) throw new Error(`A submit of ${kind} was refused: ${answer.message}`)
    acknowledge(kind, keys, answer.said)
    return answer.said[0] as string
  }

  const freshKeys = (kind: string, count: number) =>
    Array.from({ length: count }, () => {
      lastKey += 1
      return `${kind}-${lastKey}`
    })

  const jobs = () => ask(standing, {})
  const areFinal = async (ids: string[]) => unfinished(await jobs(), ids).length === 0
  const bus = makeCaseBus(crew, ask)
  return {
    crew,
    acknowledged,
    barriers: makeCaseBarriers(crew, ask),
    bus,
    troubles,
    shuffled: (items) => random.shuffled(items),
    submit: (kind, webhook) => submitKeys(kind, freshKeys(kind, 1), webhook),
    submitMany: (kind, count) => submitKeys(kind, freshKeys(kind, count)),
    async submitAgain(id) {
      const [key, { kind }] = [...acknowledged].find(([, one]) => one.id === id) as [string, { kind: string }]
      await submitKeys(kind, [key])
    },
    idOf: (kind) => [...acknowledged.values()].find((one) => one.kind === kind)?.id as string,
    idsOf: (kind) => [...acknowledged.values()].filter((one) => one.kind === kind).map(({ id }) => id),
    async move(move, id, done) {
      const answer = await crew.order({ do: move, id })
      if (answer.isDone || (answer.code === 'move_illegal' && done.some((state) => state === answer.state))) return
      throw new Error(`A ${move} of job ${id} was refused: ${answer.message}`)
    },
    areFinal,
    async untilFinal(ids, ms) {
      await eventually(() => areFinal(ids), {
        ms,
        what: `jobs were final: ${ids.join(', ')}`,
      })
    },
    hasSent: (statement) => options.seen.has(statement),
    async untilSent(statement, ms) {
      await eventually(() => options.seen.has(statement), { ms, what: `${statement} was sent` })
    },
    jobs,
    ask,
    hold: () => holdRows(options.url()),
    async close() {
      await bus.close()
      await pool?.connections.end()
    },
  }
}

async function holdRows(url: string): Promise<() => Promise<void>> {
  const client = new pg.Client(connectionOptions(url))
  client.on('error', () => {})
  await client.connect()
  await client.query('begin')
  const runner = runnerIn(client)
  await runner.run(holdJobs, {})
  await runner.run(holdBarriers, {})
  return () => client.end()
}

function unfinished(jobs: StandingRow[], ids: string[]): string[] {
  return ids.filter((id) => !jobs.some((job) => job.id === id && isOver(job)))
}
