import type { Store } from '../postgres/store.ts'
import type { RemoteAttempt, RemoteClaimer } from './claim.ts'
import type { Remote, RemoteScope } from './remote.ts'
import { findOpenSession } from './sessions.ts'
import { longestWaitMs, mostAtOnce, wholeOf } from './validate.ts'

type ClaimRequest = NonNullable<Parameters<Remote['claim']>[1]>

interface UnderWay {
  /** The session that claims. */
  id: number
  stop: AbortController
  done: Promise<unknown>
}

/** The claims of remote workers that this process is serving. */
export class RemoteClaims {
  readonly #store: Store
  readonly #claimer: RemoteClaimer
  readonly #underWay = new Set<UnderWay>()

  constructor(store: Store, claimer: RemoteClaimer) {
    this.#store = store
    this.#claimer = claimer
  }

  /** Claims up to `most` jobs, and waits up to `waitMs` for the first. Throws session_ended. */
  async claim(
    id: number,
    { most = 1, waitMs = 0, signal }: ClaimRequest,
    scope: RemoteScope,
  ): Promise<RemoteAttempt[]> {
    wholeOf('most', most, { min: 1, max: mostAtOnce })
    wholeOf('waitMs', waitMs, { min: 0, max: longestWaitMs })
    const stop = new AbortController()
    const ending = signal ? AbortSignal.any([stop.signal, signal]) : stop.signal
    const done = findOpenSession(this.#store, id, scope).then((session) =>
      this.#claimer.claim(session, { most, waitMs, signal: ending }),
    )
    // noted before its first statement is answered: a stop must not leave a claim behind that still runs statements
    const mine = { id, stop, done }
    this.#underWay.add(mine)
    return done.finally(() => this.#underWay.delete(mine))
  }

  /** Ends the claims of these sessions; what they have claimed is given back. */
  async endOf(isMeant: (sessionId: number) => boolean): Promise<void> {
    const claims = [...this.#underWay].filter(({ id }) => isMeant(id))
    for (const { stop } of claims) stop.abort()
    await Promise.allSettled(claims.map(({ done }) => done))
  }
}
