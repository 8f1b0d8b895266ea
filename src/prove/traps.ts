import type { SentStatement } from './protocol.ts'
import type { Moment, ProxyConnection, Verdict, Watcher } from './proxy-connection.ts'

/** Where a trap is set: at the n-th time that anyone sends the statement. */
export interface TrapPlace {
  statement: string
  moment: Moment
  occurrence: number
  /** Counting starts only once this statement was sent. */
  behind?: string | undefined
}

/** A statement that is held, and who sent it. */
export interface HeldStatement<Sender> {
  statement: string
  sender: Sender
  connection: ProxyConnection
}

interface Trap<Sender> {
  place: TrapPlace
  count: number
  spring: ((held: HeldStatement<Sender>) => void) | undefined
}

/** Holds statements at given occurrences, over any number of proxies. */
export class Traps<Sender> {
  readonly #sent = new Set<string>()
  #traps: Trap<Sender>[] = []

  /** Sets a trap. `spring` is called once, when the statement is held. */
  set(place: TrapPlace, spring: (held: HeldStatement<Sender>) => void): void {
    this.#traps.push({ place, count: 0, spring })
  }

  /** Removes all traps. What is held already stays so. */
  clear(): void {
    this.#traps = []
  }

  /** The watcher of one sender's proxy. `onSent` sees every statement first. */
  watcherFor(sender: () => Sender, onSent: (statement: SentStatement) => void): Watcher {
    return {
      sent: (statement) => {
        onSent(statement)
        this.#sent.add(statement.name)
        return this.#verdictOn(statement.name)
      },
      held: (statement, connection) => this.#spring({ statement, sender: sender(), connection }),
    }
  }

  #verdictOn(name: string): Verdict {
    let verdict: Verdict = 'pass'
    for (const trap of this.#traps.filter(({ place }) => place.statement === name)) {
      if (trap.place.behind !== undefined && !this.#sent.has(trap.place.behind)) continue
      trap.count += 1
      if (trap.count === trap.place.occurrence) verdict = trap.place.moment
    }
    return verdict
  }

  #spring(held: HeldStatement<Sender>): void {
    const trap = this.#traps.find(
      ({ place, count, spring }) => spring && place.statement === held.statement && count >= place.occurrence,
    )
    const spring = trap?.spring
    if (!trap || !spring) {
      held.connection.release()
      return
    }
    trap.spring = undefined
    spring(held)
  }
}
