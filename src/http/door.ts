import type { Holdfast } from '../engine/engine.ts'
import type { HttpMeter } from '../engine/http-meter.ts'
import { registeredKind, unknownKind } from '../engine/kinds.ts'
import type { Log } from '../engine/log.ts'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import type { Keyring } from './keyring.ts'
import type { Limits } from './limits.ts'
import type { Live } from './live.ts'
import type { Seal } from './seal.ts'
import type { Slices } from './slices.ts'

/** What all requests of a server share. */
export interface Door {
  /** The engine; throws while there is none yet. */
  engine(): Holdfast
  keyring: Keyring
  limits: Limits
  /** Where long work is done a little at a time. */
  slices: Slices
  meter: HttpMeter
  live: Live
  seal: Seal
  kinds: Kinds
  log: Log
  /** Fires when the server stops. */
  stopping: AbortSignal
}

/** Finds kinds by name. */
export interface Kinds {
  named(name: string): Promise<AnyJob>
}

const freshMs = 1_000

/** Makes the kinds of a server: those of its module, with their schemas, else those that workers have registered, looked up once a second. */
export function makeKinds(engine: () => Holdfast, jobs: readonly AnyJob[]): Kinds {
  const own = new Map(jobs.map((job) => [job.kind, job]))
  const found = new Map<string, AnyJob>()
  let readAtMs = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  async function read(): Promise<void> {
    const kinds = await engine().kinds()
    found.clear()
    for (const { name } of kinds) found.set(name, registeredKind(kinds, name))
    readAtMs = performance.now()
  }

  return {
    async named(name) {
      const mine = own.get(name)
      if (mine) return mine
      if (performance.now() - readAtMs > freshMs) {
        reading ??= read().finally(() => {
          reading = undefined
        })
        await reading
      }
      const kind = found.get(name)
      if (kind) return kind
      throw unknownKind(name, [...own.keys(), ...found.keys()], 'Known are')
    },
  }
}

/** The engine that is being connected to, for as long as there is none. */
export function notYet(code: ErrorCode): HoldfastError {
  return new HoldfastError('not_running', `The server is not ready yet: ${errorCodes[code].meaning}`, {
    details: { code },
  })
}
