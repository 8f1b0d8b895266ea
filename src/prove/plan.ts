import { HoldfastError } from '../errors/errors.ts'
import { declaredStatements, reasonToLeaveOut } from './catalogue.ts'
import { type Cell, playOut, type Yard } from './cell.ts'
import { type FaultName, faultNames, quickFaults, senselessness } from './faults.ts'
import { inLanes } from './lanes.ts'
import { randomOf } from './random.ts'
import { labelOf, ownersOf, type Scenario, scenarios } from './scenario.ts'
import type { Sighting } from './trap.ts'

/** Where a statement can be met. */
export interface Found {
  /** The scenarios that sent it, the cheapest first; on a slow machine one may have sent it by accident. */
  scenarios: Scenario[]
  sighting: Sighting
}

/** What the runs without faults have shown. */
export interface Survey {
  found: ReadonlyMap<string, Found>
  /** Declared statements that no scenario provokes. */
  notCovered: string[]
  /** What went wrong although nothing was broken. */
  wrongs: string[]
}

/**
 * Plays every scenario once without a fault, to learn which statements there are and where they can be met. If only some are
 * wanted, it stops as soon as it has met them.
 */
export async function survey(
  yard: Yard,
  { seed, lanes, wanted }: { seed: number; lanes: number; wanted: readonly string[] | undefined },
): Promise<Survey> {
  const wrongs: string[] = []
  const found = new Map<string, Found>()
  const isEnough = () => wanted?.every((statement) => found.has(statement)) ?? false
  // whoever owns a wanted statement comes first, or the survey would stop where it is of no use
  const order = new Set([...(wanted ?? []).flatMap(ownersOf), ...scenarios])
  await inLanes([...order], wanted ? 1 : lanes, async (scenario) => {
    if (isEnough()) return
    const mine: string[] = []
    const quiet = { prepare: () => {}, finish: async () => {}, calm: () => undefined, judge: () => {}, wrongs: mine }
    const { seen } = await playOut(yard, scenario, seed, quiet)
    wrongs.push(...mine.map((wrong) => `${scenario.name} without a fault: ${wrong}`))
    for (const [statement, sighting] of seen) {
      meet(found, statement, scenario, sighting)
      if (scenario.also?.includes(statement)) meet(found, labelOf(statement, scenario), scenario, sighting)
    }
  })
  const declared = wanted ?? (await declaredStatements())
  return { found, notCovered: declared.filter((name) => !found.has(name) && !reasonToLeaveOut(name)), wrongs }
}

/** Notes where a statement was met, in whichever order the scenarios come to an end. */
function meet(found: Map<string, Found>, statement: string, scenario: Scenario, sighting: Sighting): void {
  const known = found.get(statement)
  const met = [...(known?.scenarios ?? []), scenario]
  const all = [...new Set([...ownersOf(statement), ...scenarios])].filter((one) => met.includes(one))
  found.set(statement, { scenarios: all, sighting: all[0] === scenario || !known ? sighting : known.sighting })
}

/** A place in the matrix: a cell to run, or a reason why there is none. */
export type Place = { statement: string; fault: FaultName } & ({ cell: Cell } | { reason: string })

/** The whole matrix for one seed. */
export function planOf(found: Survey['found'], options: { seed: number; isQuick: boolean }): Place[] {
  const { seed, isQuick } = options
  return [...found].flatMap(([statement, { scenarios, sighting }]) => {
    const sensible = faultNames.filter((fault) => senselessness(fault, statement, sighting) === undefined)
    const tried = isQuick ? quickFaults(sensible, sighting, randomOf(seed, statement)) : sensible
    return faultNames.map((fault): Place => {
      const reason = senselessness(fault, statement, sighting)
      if (reason) return { statement, fault, reason }
      if (!tried.includes(fault)) return { statement, fault, reason: 'Left to the full proof, or to another seed.' }
      const occurrence = occurrenceOf(seed, statement, fault, sighting.count)
      return { statement, fault, cell: { statement, fault, occurrence, scenarios, seed } }
    })
  })
}

/** Which time to strike: any of those that will come for certain, which is fewer than came without a fault. */
function occurrenceOf(seed: number, statement: string, fault: FaultName, count: number): number {
  const most = count >= 12 ? 4 : count >= 6 ? 2 : 1
  return 1 + randomOf(seed, statement, fault).below(most)
}

/** The statement that the name of a cell begins with. */
export function statementIn(name: string): string {
  return wordsOf(name)[0] ?? ''
}

function wordsOf(name: string): string[] {
  return name.split(/\s*[×*]\s*|\s+x\s+/).map((word) => word.trim())
}

/** The one cell that a person has named, as it is written in the report: statement × fault, perhaps × occurrence. */
export function namedPlace(found: Survey['found'], name: string, seed: number): Place {
  const [statement = '', fault = '', occurrence] = wordsOf(name)
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
  const reason = senselessness(faultName, statement, known.sighting)
  if (reason) throw new HoldfastError('option_invalid', `${statement} × ${faultName} makes no sense. ${reason}`)
  const chosen = Number(occurrence) || occurrenceOf(seed, statement, faultName, known.sighting.count)
  const cell = { statement, fault: faultName, occurrence: chosen, scenarios: known.scenarios, seed }
  return { statement, fault: faultName, cell }
}
