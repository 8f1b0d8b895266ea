import type { Post } from './crew.ts'
import type { Link, Verdict, Watcher } from './link.ts'
import type { Role } from './orders.ts'
import type { Asked } from './wire.ts'

/** Where a trap lies: at the n-th time that anybody in the cell sends the statement. */
export interface TrapPlace {
  statement: string
  verdict: Exclude<Verdict, 'pass'>
  occurrence: number
  /** A statement that must have been sent before: only from there on it is counted. */
  behind?: string | undefined
}

/** A statement that is held, and who sent it. */
export interface Sprung {
  statement: string
  post: Post
  link: Link
}

/** What is known of a statement that went by. */
export interface Sighting {
  count: number
  roles: Set<Role>
  isAboutWaking: boolean
  isWrite: boolean
}

/** The eyes of a cell on all its proxies. */
export interface Traps {
  readonly seen: ReadonlyMap<string, Sighting>
  /** Lays a trap; `spring` is called once, at the moment at which the statement is held. */
  lay(place: TrapPlace, spring: (sprung: Sprung) => void): void
  /** Takes all traps away; what has sprung stays so. */
  clear(): void
  watcherOf(post: Post): Watcher
}

interface Laid {
  place: TrapPlace
  count: number
  spring: ((sprung: Sprung) => void) | undefined
}

/** Makes the eyes of a cell. */
export function makeTraps(): Traps {
  const seen = new Map<string, Sighting>()
  const laid: Laid[] = []

  function note({ name, isAboutWaking, isWrite }: Asked, role: Role): void {
    const sighting = seen.get(name) ?? { count: 0, roles: new Set(), isAboutWaking: false, isWrite: false }
    sighting.count += 1
    sighting.roles.add(role)
    sighting.isAboutWaking ||= isAboutWaking
    sighting.isWrite ||= isWrite
    seen.set(name, sighting)
  }

  function verdictOn(name: string): Verdict {
    let verdict: Verdict = 'pass'
    for (const trap of laid.filter(({ place }) => place.statement === name)) {
      if (trap.place.behind !== undefined && !seen.has(trap.place.behind)) continue
      trap.count += 1
      if (trap.count === trap.place.occurrence) verdict = trap.place.verdict
    }
    return verdict
  }

  return {
    seen,
    lay: (place, spring) => laid.push({ place, count: 0, spring }),
    clear: () => void laid.splice(0),
    watcherOf: (post) => ({
      asked(statement) {
        note(statement, post.role)
        return verdictOn(statement.name)
      },
      held(statement, link) {
        const trap = laid.find(
          ({ place, count, spring }) => spring && place.statement === statement && count >= place.occurrence,
        )
        const spring = trap?.spring
        if (!trap || !spring) return link.release()
        trap.spring = undefined
        spring({ statement, post, link })
      },
    }),
  }
}
