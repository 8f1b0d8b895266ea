/**
 * Definitions: the functions, views, triggers and checks that follow from code. A migration holds tables and data, and is frozen once
 * released; a definition can change with every release, and `migrate` replaces those that have changed. Old and new versions run side by side
 * on the same definitions, so a definition keeps its name, its parameters and what it returns. What needs others gets a new name.
 */
import { createHash } from 'node:crypto'
import { version } from '../config/version.ts'
import { type Statement, textOf } from '../postgres/sql.ts'
import { itemDefinitions } from '../transitions/barrier-counters.sql.ts'
import { joinDefinition } from '../transitions/end.sql.ts'
import { logDefinitions } from '../transitions/event-log.sql.ts'
import { gateAdoptionDefinitions } from '../transitions/gate-adoption.sql.ts'
import { gateOpeningDefinitions } from '../transitions/gate-opening.sql.ts'
import { gatePickDefinitions } from '../transitions/gate-picks.sql.ts'
import { gateRoomDefinitions } from '../transitions/gate-room.sql.ts'
import { gatedClaimDefinitions } from '../transitions/gated-claim.sql.ts'
import { hintDefinitions } from '../transitions/gates.sql.ts'
import { statusDefinition } from '../transitions/job-status.sql.ts'
import { signalDefinitions } from '../transitions/signal.sql.ts'
import { snapshotDefinition } from '../transitions/snapshot.sql.ts'
import { uniqueDefinition } from '../transitions/unique.sql.ts'
import { guards } from './guards.sql.ts'

/** One statement that creates something in the database, or replaces it. */
export interface Definition {
  name: string
  checksum: string
  statement: Statement<Record<string, never>, never>
}

/** A definition that a database has, and the version of Holdfast that put it there. */
export interface AppliedDefinition {
  name: string
  checksum: string
  version: string
}

/** Every definition, in the order in which they are created. */
export const definitions: readonly Definition[] = [
  ...guards,
  statusDefinition,
  ...logDefinitions,
  joinDefinition,
  ...itemDefinitions,
  snapshotDefinition,
  ...signalDefinitions,
  uniqueDefinition,
  ...hintDefinitions,
  ...gateRoomDefinitions,
  ...gateOpeningDefinitions,
  ...gateAdoptionDefinitions,
  ...gatePickDefinitions,
  ...gatedClaimDefinitions,
].map((statement) => ({
  name: statement.name,
  checksum: createHash('sha256')
    .update(textOf(statement.build({})))
    .digest('hex'),
  statement,
}))

/** Definitions that a database does not have, under any text. */
export function missingDefinitions(applied: readonly AppliedDefinition[]): Definition[] {
  return definitions.filter(({ name }) => !applied.some((row) => row.name === name))
}

/** Definitions that a database does not have, or has from an older version. Those from a newer version stay: they work for this one too. */
export function outdatedDefinitions(applied: readonly AppliedDefinition[]): Definition[] {
  return definitions.filter(({ name, checksum }) => {
    const row = applied.find((one) => one.name === name)
    return !row || (row.checksum !== checksum && !isOlder(version, row.version))
  })
}

/** Whether a version comes before another one, by their numbers. */
function isOlder(version: string, than: string): boolean {
  const [ours, theirs] = [numbersOf(version), numbersOf(than)]
  const first = ours.findIndex((number, index) => number !== theirs[index])
  return first >= 0 && (ours[first] as number) < (theirs[first] as number)
}

function numbersOf(version: string): number[] {
  return version.split(/[.+-]/, 3).map(Number)
}
