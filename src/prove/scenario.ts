import type { Fault, FaultName } from './faults.ts'
import type { ScenarioContext } from './scenario-context.ts'

/** What runs in a cell while the fault strikes. A statement is tried in the first scenario in which it occurs. */
export interface Scenario {
  readonly name: string
  /** Why it exists: what it provokes. */
  readonly provokes: string
  /** Statements that mean more here than where they occur first, and are tried here as well. */
  readonly also?: readonly string[]
  /** Statements that find something only here, even if they occur elsewhere: they are tried here instead. */
  readonly owns?: readonly string[]
  /** Statements that count only once another one was sent, because they find nothing before that. */
  readonly behind?: Readonly<Record<string, string>>
  /** Whether its own jobs occupy every worker, so that no other job could run. */
  readonly isFull?: true
  /** Whether it starts from a database without a schema. */
  readonly isBlank?: true
  /** The rung that recovers from what the scenario itself does. The process that takes over from the one that is hit may still be recovering from that. */
  readonly rung?: Fault['rung']
  /** Faults that must come first, or the statement would never be sent. */
  readonly prelude?: readonly { statement: string; fault: FaultName }[]
  run(context: ScenarioContext): Promise<void>
}

const separator = ' @ '

/** A statement that is tried in a second scenario, as the matrix shows it. */
export function labelOf(statement: string, { name }: Scenario): string {
  return `${statement}${separator}${name}`
}

/** The statement of a label, without the scenario in which it is tried. */
export function statementOf(label: string): string {
  return label.split(separator)[0] as string
}
