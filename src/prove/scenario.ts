import { remote } from './afar-scenario.ts'
import { barriers, expiry } from './barrier-scenarios.ts'
import { raiseByHand } from './barriers.sql.ts'
import { readers, webhooks } from './bus-scenarios.ts'
import type { Case } from './case.ts'
import { eventually } from './deadline.ts'
import { blocked, unresponsive } from './deaf-scenarios.ts'
import { drained } from './drain-scenario.ts'
import type { FaultName } from './faults.ts'
import { cancelStubborn, manned, waitMs } from './manned.ts'
import { outage } from './outage-scenario.ts'
import { staggeredPoison } from './poison-scenario.ts'
import { refused } from './refused-scenario.ts'
import { upkeep } from './upkeep-scenario.ts'

/** What goes on in a cell while the fault strikes. A statement is tried in the first scenario in which it occurs. */
export interface Scenario {
  readonly name: string
  /** Why it is there: the statements that it provokes. */
  readonly provokes: string
  /** Statements that mean more here than where they occur first, and are tried here once more. */
  readonly also?: readonly string[]
  /** Statements that find something only here, wherever else they occur: they are tried here rather than there. */
  readonly owns?: readonly string[]
  /** Statements that count only once another was sent, because before that they find nothing. */
  readonly behind?: Readonly<Record<string, string>>
  /** Statements that are sent right after an outage, when nobody is judged before everybody had the time to come back. */
  readonly afterOutage?: readonly string[]
  /** Whether it starts from a database without a schema. */
  readonly isBlank?: true
  /** Faults that must come first, or the statement would never be sent. */
  readonly prelude?: readonly { statement: string; fault: FaultName }[]
  run(on: Case): Promise<void>
}

const mark = ' @ '

/** A statement that is tried in a second scenario, as the matrix names it. */
export function labelOf(statement: string, { name }: Scenario): string {
  return `${statement}${mark}${name}`
}

/** The statement itself, without the scenario that it is tried in. */
export function statementOf(label: string): string {
  return label.split(mark)[0] as string
}

const work: Scenario = {
  name: 'work',
  provokes: 'whatever happens in a day of a system that is well',
  async run(on) {
    await manned(on)
    const kinds = ['short', 'staged', 'flaky', 'doomed', 'usable', 'chatty', 'patient', 'stubborn']
    const [short] = await Promise.all([
      on.submit('short'),
      ...on.shuffled(kinds).map((kind) => on.submit(kind)),
      on.submitMany('short', 3),
    ])
    await Promise.all([
      on.submitAgain(short),
      cancelStubborn(on),
      redoDoomed(on),
      on.crew.order({ do: 'look', id: short }),
      on.crew.order({ do: 'pause' }),
      on.crew.order({ do: 'await', id: short }),
    ])
  },
}

async function redoDoomed(on: Case): Promise<void> {
  const id = on.idOf('doomed')
  await on.untilFinal([id], waitMs)
  // after an ambiguous answer it may be anywhere on its second round
  await on.move('redo', id, ['queued', 'running', 'failed'])
}

const stop: Scenario = {
  name: 'stop',
  provokes: 'an orderly stop in the middle of work: release, close, the lead given up',
  async run(on) {
    await manned(on)
    const ids = await Promise.all([on.submit('held'), on.submit('short')])
    const started = await eventually(() => on.crew.effects.find((effect) => effect.jobId === ids[0]), {
      ms: waitMs,
      what: 'the handler that is to be held up had started',
    })
    const runs = (seat: string) => started.token.startsWith(`${on.crew.at(seat)?.member.pid}-`)
    for (const seat of runs('worker-2') ? ['worker-2', 'worker-1'] : ['worker-1', 'worker-2'])
      await on.crew.relieve(seat)
  },
}

const crash: Scenario = {
  name: 'crash',
  provokes:
    'a job that kills its workers: taken back by their supervisor, revived by the leader, quarantined, also at an optional stage',
  async run(on) {
    await manned(on)
    await Promise.all([on.submit('poison'), on.submit('patient'), on.submit('short')])
    const pid = await eventually(() => [...on.crew.killed][0], { ms: waitMs, what: 'the poison had killed its worker' })
    await on.crew.order({ do: 'reclaim', pid })
    await on.untilFinal([on.idOf('poison'), on.idOf('patient')], waitMs)
    await on.untilFinal([await on.submit('costly')], waitMs)
  },
}

const fanOut: Scenario = {
  name: 'fan-out',
  provokes:
    'fan-outs that end well, with flaws, too badly, nested, cancelled and redone, with a producer that gives up and counters that are too high',
  also: ['job.fail', 'job.cancel', 'job.redo'],
  async run(on) {
    await manned(on)
    await Promise.all(on.shuffled(['wide', 'torn', 'flawed', 'spoilt', 'drawn', 'nest']).map((kind) => on.submit(kind)))
    await on.ask(raiseByHand, {})
    await Promise.all([cancelDrawn(on), redoFlawed(on)])
    await on.crew.order({ do: 'look', id: on.idOf('wide') })
  },
}

async function cancelDrawn(on: Case): Promise<void> {
  const id = on.idOf('drawn')
  await eventually(
    async () => (await on.jobs()).some((job) => job.kind === 'drawn' && job.is_part && job.attempt > 0),
    {
      ms: waitMs,
      what: 'an item of the job that is to be cancelled had started',
    },
  )
  await on.move('cancel', id, ['cancelled'])
}

async function redoFlawed(on: Case): Promise<void> {
  const id = on.idOf('flawed')
  await on.untilFinal([id], waitMs)
  await on.move('redo', id, ['queued', 'running', 'waiting', 'partial'])
}

const join: Scenario = {
  name: 'join',
  provokes: 'the settle of a last item, which is the join of its parent',
  also: ['job.finish'],
  async run(on) {
    await manned(on)
    await on.submit('lone')
  },
}

const ambiguous: Scenario = {
  name: 'ambiguous',
  provokes: 'the questions whether a settle or a claim whose answer was lost has been carried out',
  prelude: [
    { statement: 'job.claim', fault: 'cut-after' },
    { statement: 'job.finish', fault: 'cut-after' },
  ],
  async run(on) {
    await manned(on)
    await Promise.all([on.submit('short'), on.submit('patient')])
  },
}

const idle: Scenario = {
  name: 'idle',
  provokes: 'what happens when nothing happens: the bus is probed every five seconds',
  async run(on) {
    await manned(on)
    await on.submit('short')
    await on.untilSent('bus.probe', waitMs)
  },
}

const migrations: Scenario = {
  name: 'migrate',
  provokes: 'the first start on an empty database, by two processes at once',
  isBlank: true,
  async run(on) {
    await Promise.all([on.crew.fill('migrator-1', 'migrator'), on.crew.fill('migrator-2', 'migrator')])
    await manned(on)
    await on.submit('short')
  },
}

/** All scenarios, the cheapest first. */
export const scenarios: readonly Scenario[] = [
  work,
  join,
  fanOut,
  barriers,
  remote,
  upkeep,
  refused,
  readers,
  stop,
  unresponsive,
  blocked,
  expiry,
  crash,
  outage,
  drained,
  staggeredPoison,
  webhooks,
  ambiguous,
  idle,
  migrations,
]

/** The scenarios that own a statement. */
export function ownersOf(statement: string): Scenario[] {
  return scenarios.filter(({ owns }) => owns?.includes(statement))
}
