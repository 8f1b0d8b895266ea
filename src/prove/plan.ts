import { HoldfastError } from '../errors/errors.ts'
import { declaredStatements, isSentByChance, reasonToLeaveOut } from './catalogue.ts'
import type { Cell } from './cell.ts'
import { type FaultName, faultNames, quickFaults, whyNotApplicable } from './faults.ts'
import { inLanes } from './lanes.ts'
import { randomOf } from './random.ts'
import { type Resources, runScenario } from './run-scenario.ts'
import { labelOf, type Scenario } from './scenario.ts'
import { ownersOf, scenarios } from './scenarios.ts'
import type { Sighting } from './sightings.ts'

/** Where a statement was sent. */
export interface Found {
  /** The scenarios that sent it, the preferred one first. On a slow machine one may have sent it by accident. */
  scenarios: Scenario[]
  sighting: Sighting
}

/** What the scenarios showed without faults. */
export interface Survey {
  found: ReadonlyMap<string, Found>
  /** Declared statements that no scenario sends. */
  notCovered: string[]
  /** What went wrong although nothing was broken. */
  wrongs: string[]
}

/**
 * Runs every scenario once without a fault, to find out which statements are sent where. If only some statements are wanted, it stops as
 * soon as it has found them.
 */
export async function survey(
  resources: Resources,
  { seed, lanes, wanted }: { seed: number; lanes: number; wanted: readonly string[] | undefined },
): Promise<Survey> {
  const wrongs: string[] = []
  const found = new Map<string, Found>()
  const isEnough = () => wanted?.every((statement) => found.has(statement)) ?? false
  // the owners of wanted statements come first, or the survey would stop before it reaches them
  const order = new Set([...(wanted ?? []).flatMap(ownersOf), ...scenarios])
  await inLanes([...order], wanted ? 1 : lanes, async (scenario) => {
    if (isEnough()) return
    const run = await runScenario(resources, scenario, seed)
    wrongs.push(...run.wrongs.map((wrong) => `${scenario.name} without a fault: ${wrong}`))
    for (const [statement, sighting] of run.seen) {
      if (isSentByChance(statement)) continue
      addSighting(found, statement, scenario, sighting)
      if (scenario.also?.includes(statement)) addSighting(found, labelOf(statement, scenario), scenario, sighting)
    }
  })
  const declared = wanted ?? (await declaredStatements())
  return { found, notCovered: declared.filter((name) => !found.has(name) && !reasonToLeaveOut(name)), wrongs }
}

/**
 * Notes where a statement was sent. The order in which the scenarios end does not matter. The owners of a statement come first, even if they did
 * not send it this time: on a busy machine, only scenarios that took unusually long may have.
 */
function addSighting(found: Map<string, Found>, statement: string, scenario: Scenario, sighting: Sighting): void {
  const known = found.get(statement)
  const senders = [...ownersOf(statement), ...(known?.scenarios ?? []), scenario]
  const all = [...new Set([...ownersOf(statement), ...scenarios])].filter((one) => senders.includes(one))
  found.set(statement, { scenarios: all, sighting: all[0] === scenario || !known ? sighting : known.sighting })
}

/** An entry of the matrix: a cell to run, or the reason why there is none. */
export type PlannedEntry = { statement: string; fault: FaultName } & ({ cell: Cell } | { reason: string })

/** The whole matrix for one seed. */
function planOf(found: Survey['found'], options: { seed: number; isQuick: boolean }): PlannedEntry[] {
  const { seed, isQuick } = options
  return [...found].flatMap(([statement, { scenarios, sighting }]) => {
    const applicable = faultNames.filter(
      (fault) => reasonAgainst(fault, statement, { scenarios, sighting }) === undefined,
    )
    const chosen = isQuick ? quickFaults(applicable, sighting, randomOf(seed, statement)) : applicable
    return faultNames.map((fault): PlannedEntry => {
      const reason = reasonAgainst(fault, statement, { scenarios, sighting })
      if (reason) return { statement, fault, reason }
      if (!chosen.includes(fault)) return { statement, fault, reason: 'Left to the full proof, or to another seed.' }
      const occurrence = occurrenceOf(seed, statement, fault, sighting.count)
      return { statement, fault, cell: { statement, fault, occurrence, scenarios, seed } }
    })
  })
}

/** Why a fault does not apply to a statement in the scenario where it is tried first. */
function reasonAgainst(fault: FaultName, statement: string, { scenarios, sighting }: Found): string | undefined {
  return whyNotApplicable(fault, statement, { sighting, isFull: scenarios[0]?.isFull === true })
}

/** Several matrices, each with its own seed. Later ones leave out cells that an earlier one has with the same occurrence. */
export function planRounds(
  found: Survey['found'],
  { seed, isQuick, rounds }: { seed: number; isQuick: boolean; rounds: number },
): PlannedEntry[] {
  const planned = new Set<string>()
  return Array.from({ length: rounds }, (_, round) => planOf(found, { seed: seed + round, isQuick }))
    .flat()
    .filter((entry) => {
      const name = `${entry.statement} × ${entry.fault} × ${'cell' in entry ? entry.cell.occurrence : 'none'}`
      return !planned.has(name) && planned.add(name)
    })
}

/** The occurrence to strike: one that is certain to come, so fewer than came without a fault. */
function occurrenceOf(seed: number, statement: string, fault: FaultName, count: number): number {
  const most = count >= 12 ? 4 : count >= 6 ? 2 : 1
  return 1 + randomOf(seed, statement, fault).below(most)
}

/** The statement in the name of a cell. */
export function statementIn(name: string): string {
  return partsOf(name)[0] ?? ''
}

function partsOf(name: string): string[] {
  return name.split(/\s*[×*]\s*|\s+x\s+/).map((part) => part.trim())
}

/** The one cell with a name from the report: statement × fault, optionally × occurrence. */
export function namedEntry(found: Survey['found'], name: string, seed: number): PlannedEntry {
  const [statement = '', fault = '', occurrence] = partsOf(name)
  const known = found.get(statement)
  if (!known)
    throw new HoldfastError(
      'option_invalid',
      `No scenario sends the statement ${JSON.stringify(statement)}. These are known: ${[...found.keys()].sort().join(', ')}.`,
    )
  const faultName = faultNames.find((one) => one === fault)
  if (!faultName)
    throw new HoldfastError(
      'option_invalid',
      `There is no fault ${JSON.stringify(fault)}; use one of ${faultNames.join(', ')}, as in "job.finish × kill-after".`,
    )
  const reason = reasonAgainst(faultName, statement, known)
  if (reason) throw new HoldfastError('option_invalid', `${statement} × ${faultName} does not apply. ${reason}`)
  const chosen = Number(occurrence) || occurrenceOf(seed, statement, faultName, known.sighting.count)
  const cell = { statement, fault: faultName, occurrence: chosen, scenarios: known.scenarios, seed }
  return { statement, fault: faultName, cell }
}
