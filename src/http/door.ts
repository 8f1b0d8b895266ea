import type { Holdfast } from '../engine/engine.ts'
import type { HttpMeter } from '../engine/http-meter.ts'
import { submittable, unknownKind } from '../engine/kinds.ts'
import type { Log } from '../engine/log.ts'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import type { FairGate } from './fair-gate.ts'
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
  /** Where long work in the database waits for its turn. */
  gate: FairGate
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
  /** The kind of that name that applies to the jobs of a tenant. Throws unknown_kind. */
  named(name: string, tenant: string): Promise<AnyJob>
}

const freshMs = 1_000
const mostRemembered = 10_000
const shownOfModule = 200

/** Makes the kinds of a server: those of its module, with their schemas, else those that workers have registered, each looked up once a second. */
export function makeKinds(engine: () => Holdfast, jobs: readonly AnyJob[]): Kinds {
  const own = new Map(jobs.map((job) => [job.kind, job]))
  const found = new Map<string, { kind: AnyJob; readAtMs: number }>()

  function remembered(name: string, tenant: string | null): AnyJob | undefined {
    const known = found.get(placeOf(name, tenant))
    return known && performance.now() - known.readAtMs <= freshMs ? known.kind : undefined
  }

  function remember(kind: AnyJob, tenant: string | null): AnyJob {
    const place = placeOf(kind.kind, tenant)
    found.delete(place)
    found.set(place, { kind, readAtMs: performance.now() })
    if (found.size > mostRemembered) found.delete(found.keys().next().value as string)
    return kind
  }

  return {
    async named(name, tenant) {
      const known = own.get(name) ?? remembered(name, null) ?? remembered(name, tenant)
      if (known) return known
      const registered = await engine().kind(name, { tenant })
      if (registered) return remember(submittable(registered), registered.tenant)
      const near = await engine().nearKinds(name, { tenant })
      throw unknownKind(name, [...[...own.keys()].slice(0, shownOfModule), ...near], 'Known are')
    },
  }
}

const placeOf = (name: string, tenant: string | null) => `${tenant ?? ''} ${name}`

/** The engine that is being connected to, for as long as there is none. */
export function notYet(code: ErrorCode): HoldfastError {
  return new HoldfastError('not_running', `The server is not ready yet: ${errorCodes[code].meaning}`, {
    details: { code },
  })
}
