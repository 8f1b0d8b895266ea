import type { ApiKey } from '../keys/keys.ts'

/** Looks up keys by their text. Returns one answer each, in order: null if the key is not valid. */
export type AskAll = (texts: readonly string[]) => Promise<(ApiKey | null)[]>

/** How long the next batch is collected after the last one was answered. */
const gapMs = 10

interface Waiting {
  text: string
  resolve(key: ApiKey | null): void
  reject(error: unknown): void
}

/**
 * Looks up keys in batches, one batch at a time. A single key is looked up at once; keys that arrive in the meantime share the next query. So however
 * many keys strangers try, they cost the database one connection and a hundred queries per second.
 */
export class KeyLookups {
  readonly #askAll: AskAll
  #waiting: Waiting[] = []
  #isResting = false

  constructor(askAll: AskAll) {
    this.#askAll = askAll
  }

  find(text: string): Promise<ApiKey | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject })
      if (!this.#isResting) void this.#leave()
    })
  }

  async #leave(): Promise<void> {
    this.#isResting = true
    while (this.#waiting.length > 0) {
      const batch = this.#waiting
      this.#waiting = []
      await this.#ask(batch)
      await new Promise((resolve) => setTimeout(resolve, gapMs).unref())
    }
    this.#isResting = false
  }

  async #ask(batch: Waiting[]): Promise<void> {
    try {
      const keys = await this.#askAll(batch.map(({ text }) => text))
      for (const [index, { resolve }] of batch.entries()) resolve(keys[index] ?? null)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}
