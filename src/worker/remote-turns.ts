/** Lets those who ask under the same name go one after the other, and everybody else at once. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Does this after all that was asked before under that name, however it ended. */
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
