import type { Role } from './orders.ts'
import type { SentStatement } from './protocol.ts'

/** What is known about a statement that was sent. */
export interface Sighting {
  count: number
  roles: Set<Role>
  isAboutWaking: boolean
  isWrite: boolean
}

/** The statements that the processes of a cell have sent, by name. */
export class Sightings {
  readonly #byName = new Map<string, Sighting>()

  add({ name, isAboutWaking, isWrite }: SentStatement, role: Role): void {
    const sighting = this.#byName.get(name) ?? { count: 0, roles: new Set(), isAboutWaking: false, isWrite: false }
    sighting.count += 1
    sighting.roles.add(role)
    sighting.isAboutWaking ||= isAboutWaking
    sighting.isWrite ||= isWrite
    this.#byName.set(name, sighting)
  }

  has(statement: string): boolean {
    return this.#byName.has(statement)
  }

  /** All of them, as of now. */
  snapshot(): ReadonlyMap<string, Sighting> {
    return new Map(this.#byName)
  }
}
