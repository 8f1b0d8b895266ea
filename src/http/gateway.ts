import type { Holdfast } from '../engine/engine.ts'
import type { Log } from '../engine/log.ts'
import { type ErrorCode, errorCodes, HoldfastError } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import type { HttpMeter } from '../metrics/http-metrics.ts'
import { submittable, unknownKind } from '../reads/kinds.ts'
import type { CursorTokens } from './cursor-token.ts'
import type { FairGate } from './fair-gate.ts'
import type { Keyring } from './keyring.ts'
import type { Limits } from './limits.ts'
import type { Live } from './live.ts'
import type { Slices } from './slices.ts'

/** What all requests of a server share. */
export interface Gateway {
  /** The engine; throws while there is none yet. */
  engine(): Holdfast
  keyring: Keyring
  limits: Limits
  /** Runs long work in small steps. */
  slices: Slices
  /** Limits long work in the database. */
  gate: FairGate
  /** Limits reads of many rows. */
  scans: FairGate
  meter: HttpMeter
  live: Live
  cursorTokens: CursorTokens
  kinds: Kinds
  log: Log
  /** How long a client may take to read the next part of a stream. */
  sendMs: number
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

/** Makes the kinds of a server: first those of its module, with their schemas, then those that workers have registered, cached for a second. */
export function makeKinds(engine: () => Holdfast, jobs: readonly AnyJob[]): Kinds {
  const own = new Map(jobs.map((job) => [job.kind, job]))
  const found = new Map<string, { kind: AnyJob; readAtMs: number }>()

  function remembered(name: string, tenant: string | null): AnyJob | undefined {
    const known = found.get(keyOf(name, tenant))
    return known && performance.now() - known.readAtMs <= freshMs ? known.kind : undefined
  }

  function remember(kind: AnyJob, tenant: string | null): AnyJob {
    const key = keyOf(kind.kind, tenant)
    found.delete(key)
    found.set(key, { kind, readAtMs: performance.now() })
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
      throw unknownKind(name, [...[...own.keys()].slice(0, shownOfModule), ...near], 'This server knows')
    },
  }
}

const keyOf = (name: string, tenant: string | null) => `${tenant ?? ''} ${name}`

/** The error while there is no engine yet: why it is not connected. */
export function notYet(code: ErrorCode): HoldfastError {
  return new HoldfastError('not_running', `The server is not ready yet: ${errorCodes[code].meaning}`, {
    details: { code },
  })
}
