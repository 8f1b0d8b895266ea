/**
 * Submits of unique jobs. One statement carries many, but each key only once: a job that is inserted by a statement is not visible to what the
 * same statement asks about its key. So submits with the same key follow one another, in the order in which they came. They do so before they
 * join a statement: however many there are, submits with other keys don't wait for them.
 */
import { HoldfastError } from '../errors/errors.ts'
import type { JobId } from '../job/id.ts'
import type { Runner, Store } from '../postgres/store.ts'
import { type Group, group, type Late } from '../service/group.ts'
import { within } from '../service/service.ts'
import { Apart } from '../transitions/contended-writes.ts'
import type { PreparedJob } from './prepare.ts'
import { submitUnique } from './submit.sql.ts'
import type { Submitted } from './submit.ts'

type Answer = Submitted | HoldfastError

const nameOf = ({ tenant, kind, unique }: PreparedJob) => `${tenant}\n${kind}\n${unique?.key}`

/** Splits jobs into rounds, in each of which no key occurs twice; the keys of a round are in order. */
export function roundsOf(jobs: readonly PreparedJob[]): PreparedJob[][] {
  const rounds: { name: string; job: PreparedJob }[][] = []
  const earlier = new Map<string, number>()
  for (const job of jobs) {
    const name = nameOf(job)
    const count = earlier.get(name) ?? 0
    earlier.set(name, count + 1)
    const round = rounds[count] ?? []
    rounds[count] = round
    round.push({ name, job })
  }
  return rounds.map((round) => round.sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ job }) => job))
}

/** Submits jobs with different keys in one statement. */
export async function writeUnique(runner: Runner, jobs: PreparedJob[]): Promise<Submitted[]> {
  const rows = await runner.run(submitUnique, { jobs })
  const byId = new Map(rows.map((row) => [row.id, row]))
  return jobs.map(({ id }) => {
    const { answer, holder } = byId.get(id) as { answer: Submitted['outcome']; holder: string }
    return { id: holder as JobId, isNew: holder === id, outcome: answer }
  })
}

/** Submits unique jobs. Concurrent submits share a commit; those with the same key follow one another. */
export function makeUniqueSubmitter(store: Store, batchSize: number) {
  const apart = new Apart<PreparedJob, Answer>({ store, run: writeUnique, nameOf, refused: refusalOf })
  const all: Group<PreparedJob, Answer> = group({
    most: batchSize,
    // one at a time, or two statements of this process would wait for the same key
    lanes: 1,
    weightOf: ({ inputBytes }) => inputBytes,
    async write(jobs) {
      const answers = new Map<PreparedJob, Answer | Late<Answer>>()
      for (const round of roundsOf(jobs)) {
        const written = await apart.write(round)
        for (const [index, job] of round.entries()) answers.set(job, written[index] as Answer)
      }
      return jobs.map((job) => answers.get(job) as Answer)
    },
  })
  const line = new Line()
  return {
    async submit(job: PreparedJob): Promise<Submitted> {
      const answer = await line.run(nameOf(job), () => all.add(job))
      if (answer instanceof HoldfastError) throw answer
      return answer
    },
    async idle(): Promise<void> {
      await line.idle()
      await all.idle()
    },
  }
}

/** How long a submit waits for the one before it. If that one waits for a locked row, all that follow wait with it. */
const behindMs = 10_000

/** Lets those of the same name follow one another. */
class Line {
  /** The last of each name. */
  readonly #last = new Map<string, Promise<unknown>>()

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name)
    const own = before ? within(behindMs, before).then(work) : work()
    const ended = own.catch(() => {})
    this.#last.set(name, ended)
    try {
      return await own
    } finally {
      if (this.#last.get(name) === ended) this.#last.delete(name)
    }
  }

  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.all(this.#last.values())
  }
}

/** A submit that was alone in its batch gets the database's own error. */
function refusalOf(error: unknown, count: number): HoldfastError {
  if (count === 1) throw error
  return error instanceof HoldfastError
    ? error
    : new HoldfastError('not_storable', 'Postgres refused this job.', { cause: error })
}
