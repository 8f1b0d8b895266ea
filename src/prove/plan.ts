import { HoldfastError } from '../errors/errors.ts'
import { declaredStatements, reasonToLeaveOut } from './catalogue.ts'
import { type Cell, playOut, type Yard } from './cell.ts'
import { type FaultName, faultNames, faultOf, senselessness } from './faults.ts'
import { inLanes } from './lanes.ts'
import { randomOf } from './random.ts'
import { labelOf, type Scenario, scenarios } from './scenario.ts'
import type { Sighting } from './trap.ts'

/** Where a statement can be met. */
export interface Found {
  scenario: Scenario
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

/** Plays every scenario once without a fault, to learn which statements there are and where they can be met. */
export async function survey(yard: Yard, seed: number, lanes: number): Promise<Survey> {
  const wrongs: string[] = []
  const played = await inLanes([...scenarios], lanes, async (scenario) => {
    const mine: string[] = []
    const quiet = { prepare: () => {}, finish: async () => {}, mayOverlap: false, wrongs: mine }
    const { seen } = await playOut(yard, scenario, seed, quiet)
    wrongs.push(...mine.map((wrong) => `${scenario.name} without a fault: ${wrong}`))
    return { scenario, seen }
  })
  const found = new Map<string, Found>()
  for (const { scenario, seen } of played)
    for (const [statement, sighting] of seen) {
      if (!found.has(statement)) found.set(statement, { scenario, sighting })
      else if (scenario.also?.includes(statement)) found.set(labelOf(statement, scenario), { scenario, sighting })
    }
  const missing = (await declaredStatements()).filter((name) => !found.has(name) && !reasonToLeaveOut(name))
  return { found, notCovered: missing, wrongs }
}

/** A place in the matrix: a cell to run, or a reason why there is none. */
export type Place = { statement: string; fault: FaultName } & ({ cell: Cell } | { reason: string })

/** The whole matrix for one seed. */
export function planOf(found: Survey['found'], options: { seed: number; isQuick: boolean }): Place[] {
  return [...found].flatMap(([statement, { scenario, sighting }]) =>
    faultNames.map((fault): Place => {
      const reason = reasonAgainst(fault, sighting, options.isQuick)
      if (reason) return { statement, fault, reason }
      const occurrence = occurrenceOf(options.seed, statement, fault, sighting.count)
      return { statement, fault, cell: { statement, fault, occurrence, scenario, seed: options.seed } }
    }),
  )
}

function reasonAgainst(fault: FaultName, sighting: Sighting, isQuick: boolean): string | undefined {
  return senselessness(fault, sighting) ?? (isQuick && !faultOf(fault).isMain ? 'Left to the full proof.' : undefined)
}

/** Which time to strike: any of those that will come for certain, which is fewer than came without a fault. */
function occurrenceOf(seed: number, statement: string, fault: FaultName, count: number): number {
  const most = count >= 12 ? 4 : count >= 6 ? 2 : 1
  return 1 + randomOf(seed, statement, fault).below(most)
}

/** The one cell that a person has named, as it is written in the report: statement × fault, perhaps × occurrence. */
export function namedPlace(found: Survey['found'], name: string, seed: number): Place {
  const [statement = '', fault = '', occurrence] = name.split(/\s*[×*]\s*|\s+x\s+/).map((word) => word.trim())
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
  const reason = senselessness(faultName, known.sighting)
  if (reason) throw new HoldfastError('option_invalid', `${statement} × ${faultName} makes no sense. ${reason}`)
  const chosen = Number(occurrence) || occurrenceOf(seed, statement, faultName, known.sighting.count)
  const cell = { statement, fault: faultName, occurrence: chosen, scenario: known.scenario, seed }
  return { statement, fault: faultName, cell }
}
