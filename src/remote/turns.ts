/** Runs actions under the same name one after the other, and all others at once. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Runs an action once all earlier ones under that name are over, whether or not they failed. */
  async take<T>(name: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve()
    const mine = before.then(act, act)
    this.#last.set(name, mine)
    try {
      return await mine
    } finally {
      if (this.#last.get(name) === mine) this.#last.delete(name)
    }
  }
}
