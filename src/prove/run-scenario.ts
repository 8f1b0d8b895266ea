import { audit } from '../audit/audit.ts'
import { messageOf } from '../errors/errors.ts'
import { boundOf } from '../reaper/recovery-bound.ts'
import { continued } from './barriers.sql.ts'
import { findBusWrongs } from './bus-check.ts'
import { committedOutputs, moveEvents } from './cell-database.sql.ts'
import { findWrongs, sentencesOf } from './check.ts'
import { eventually, inTime } from './deadline.ts'
import { faultOf } from './faults.ts'
import type { MemberPool } from './member-pool.ts'
import { type CellProcess, Processes } from './processes.ts'
import { randomOf } from './random.ts'
import { strikeAndRecover } from './recovery.ts'
import type { Scenario } from './scenario.ts'
import { isOver, ScenarioContext } from './scenario-context.ts'
import { cellConfig } from './settings.ts'
import { type Sighting, Sightings } from './sightings.ts'
import type { TestServer } from './test-server.ts'
import { Traps } from './traps.ts'

/** What scenarios run on. */
export interface Resources {
  server: TestServer
  pool: MemberPool
  /** A module with other kinds than the prover's own. */
  module: string | undefined
}

/** A scenario in progress. */
export interface ScenarioRun {
  context: ScenarioContext
  traps: Traps<CellProcess>
  /** Restarts the server. */
  restart: () => Promise<void>
}

/** What is added to a scenario to make a cell of it. */
export interface ScenarioHooks {
  /** Called before the scenario starts. */
  prepare?(run: ScenarioRun): void
  /** Called after the scenario, before everything has to come to rest. */
  finish?(context: ScenarioContext): Promise<void>
  /** Called after all checks. */
  check?(context: ScenarioContext): void
  /** Resolves when no fault is in progress. */
  untilCalm?(): Promise<unknown>
}

const finalMs = 20_000
const calmMs = 40_000
const auditMs = 60_000

/** Runs a scenario on a database of its own until all its jobs are final, and checks what it leaves behind. */
export async function runScenario(
  resources: Resources,
  scenario: Scenario,
  seed: number,
  hooks: ScenarioHooks = {},
): Promise<{ seen: ReadonlyMap<string, Sighting>; wrongs: string[] }> {
  const { server, pool, module } = resources
  const { databases } = server
  const database = await databases.lend(scenario.isBlank ? 'blank' : 'migrated')
  const url = () => databases.url(database)
  const [traps, sightings] = [new Traps<CellProcess>(), new Sightings()]
  const processes = new Processes({ pool, traps, sightings, target: () => server.target(), url, module })
  const context = new ScenarioContext({ processes, sightings, url, random: randomOf(seed, scenario.name) })
  const run = { context, traps, restart: () => server.restart(database) }
  const wrongs = await play(run, scenario, hooks)
  // the end of a cell is not part of it: a statement that is sent only there needs a scenario of its own
  const seen = sightings.snapshot()
  traps.clear()
  await inTime(Promise.resolve(hooks.untilCalm?.()), calmMs, 'the fault was over').catch(() => {})
  await processes.stop()
  await context.close()
  await databases.takeBack(database)
  return { seen, wrongs: [...wrongs, ...processes.problems, ...context.problems] }
}

async function play(run: ScenarioRun, scenario: Scenario, hooks: ScenarioHooks): Promise<string[]> {
  const { context } = run
  const wrongs: string[] = []
  try {
    for (const one of scenario.prelude ?? []) setPrelude(run, one)
    hooks.prepare?.(run)
    await scenario.run(context)
    await hooks.finish?.(context)
    await untilAllFinal(context)
    await context.bus.untilQuiet(finalMs)
    wrongs.push(...(await check(context)))
    hooks.check?.(context)
  } catch (error) {
    wrongs.push(messageOf(error))
  }
  return wrongs
}

function setPrelude(
  { context, traps, restart }: ScenarioRun,
  { statement, fault }: NonNullable<Scenario['prelude']>[number],
): void {
  traps.set({ statement, moment: faultOf(fault).at, occurrence: 1 }, (held) => {
    strikeAndRecover(fault, { context, held, restart }).catch((error) => context.problems.push(messageOf(error)))
  })
}

async function untilAllFinal(context: ScenarioContext): Promise<void> {
  let open: string[] = []
  await eventually(
    async () => {
      const live = (await context.jobs()).filter((job) => !isOver(job))
      open = live.map(({ id, kind, state }) => `${id} (${kind}, ${state})`)
      return open.length === 0
    },
    { ms: finalMs, what: 'all jobs were final' },
  ).catch((error: Error) => {
    throw new Error(`${error.message} Still open: ${open.join(', ')}.`)
  })
}

async function check(context: ScenarioContext): Promise<string[]> {
  const { ask, acknowledged, processes } = context
  const { effects, killed, marks } = processes
  const limits = { boundMs: boundOf(cellConfig()), latest: null, budgetMs: auditMs }
  const audited = await audit({ run: ask, transaction: (work) => work({ run: ask }) }, limits)
  const barriers = { expected: context.barriers.expected, continued: await ask(continued, {}), marks }
  const [jobs, events, outputs] = [await context.jobs(), await ask(moveEvents, {}), await ask(committedOutputs, {})]
  return [
    ...sentencesOf(audited),
    ...findWrongs({ acknowledged, jobs, events, outputs, effects, killed, barriers }),
    ...findBusWrongs(await context.bus.evidence()),
  ]
}
