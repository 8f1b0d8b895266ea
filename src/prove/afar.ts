import { setTimeout as sleep } from 'node:timers/promises'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError, messageOf, PermanentError } from '../errors/errors.ts'
import { type AnyJob, defineJob } from '../job/define.ts'
import type { Fence, JobId } from '../job/id.ts'
import { pause } from '../service/service.ts'
import type { OpenedRemote } from '../worker/remote.ts'
import type { RemoteAttempt } from '../worker/remote-claim.ts'
import type { RemoteOutcome } from '../worker/remote-given.ts'
import { type Context, chat, monotonicMs, seen, type Tell } from './kinds.ts'
import { cellSettings } from './settings.ts'

/** The kinds that only remote workers of a proof serve. */
export function afarKinds(tell: Tell): Record<string, AnyJob> {
  const ok = seen(tell, () => {})
  const all: AnyJob[] = [
    defineJob('afar', {
      stages: [
        { name: 'first', run: ok },
        { name: 'second', run: ok },
      ],
    }),
    defineJob('afar-flaky', {
      run: seen(tell, ({ attempt }) => {
        if (attempt === 1) throw new Error('The first attempt fails.')
      }),
    }),
    defineJob('afar-usable', {
      stages: [
        { name: 'needed', run: ok },
        {
          name: 'extra',
          optional: true,
          run: seen(tell, () => {
            throw new PermanentError('This stage always fails.')
          }),
        },
      ],
    }),
    defineJob('afar-chatty', { run: seen(tell, chat) }),
    // at first long enough that whoever stops has to give it back, however slow the machine is
    defineJob('afar-suspect', {
      run: seen(tell, ({ signal, attempt }) => sleep(attempt === 1 ? 3_000 : 10, undefined, { signal })),
    }),
  ]
  return Object.fromEntries(all.map((job) => [job.kind, job]))
}

interface Held {
  fence: Fence
  abort: AbortController
}

/** Works like a program that knows nothing but what a server answers. Its server happens to be in this process. */
export function workFromAfar(hf: Holdfast, tell: Tell): { stop(): Promise<void> } {
  const kinds = afarKinds(tell)
  const held = new Map<string, Held>()
  const stopping = new AbortController()
  const settling = new Set<Promise<void>>()
  let heldUntilMs = 0

  const isHeld = () => monotonicMs() < heldUntilMs
  const abortAll = (reason: string) => {
    for (const { abort } of held.values()) abort.abort({ reason })
  }

  async function live(): Promise<void> {
    while (!stopping.signal.aborted) {
      const sentAtMs = monotonicMs()
      const session = await hf.remote.open(self(kinds)).catch(() => pause(50, stopping.signal))
      if (!session) continue
      heldUntilMs = sentAtMs + session.leaseMs - cellSettings.abortMarginMs
      const over = new AbortController()
      await Promise.all([keep(session, over), claim(session, over.signal), watch(over.signal)])
      await Promise.all(settling)
      if (stopping.signal.aborted) await untilAnswered(() => hf.remote.close(session.id))
    }
  }

  /** Renews the lease until the session is over, or until everything is given back. */
  async function keep(session: OpenedRemote, over: AbortController): Promise<void> {
    while (!stopping.signal.aborted || held.size > 0) {
      const sentAtMs = monotonicMs()
      try {
        const { lost } = await hf.remote.beat(session.id, { held: [...held.values()].map(({ fence }) => fence) })
        heldUntilMs = sentAtMs + session.leaseMs - cellSettings.abortMarginMs
        for (const { id, attempt, reason } of lost) held.get(`${id} ${attempt}`)?.abort.abort({ reason })
      } catch (error) {
        if (isOver(error)) break
      }
      await pause(cellSettings.heartbeatMs)
    }
    over.abort()
    abortAll('lease_lost')
  }

  /** Aborts on the clock of this process, before the database would give its jobs away. */
  async function watch(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      if (!isHeld()) abortAll('lease_lost')
      await pause(10, over)
    }
  }

  async function claim(session: OpenedRemote, over: AbortSignal): Promise<void> {
    const signal = AbortSignal.any([over, stopping.signal])
    while (!signal.aborted) {
      try {
        for (const attempt of await hf.remote.claim(session.id, { most: 4, waitMs: 500, signal }))
          start(session, attempt)
      } catch (error) {
        if (isOver(error)) return
        await pause(50, signal)
      }
    }
  }

  function start(session: OpenedRemote, attempt: RemoteAttempt): void {
    const fence = { id: attempt.id as JobId, attempt: attempt.attempt }
    const abort = new AbortController()
    const key = `${fence.id} ${fence.attempt}`
    held.set(key, { fence, abort })
    const settled = run(session, attempt, abort.signal)
      .then((outcome) => settle(session, attempt, outcome))
      .finally(() => {
        held.delete(key)
        settling.delete(settled)
      })
    settling.add(settled)
  }

  async function run(session: OpenedRemote, attempt: RemoteAttempt, signal: AbortSignal): Promise<RemoteOutcome> {
    const mine = { id: attempt.id, attempt: attempt.attempt }
    if (!isHeld()) return { ...mine, outcome: 'released' }
    const stage = kinds[attempt.kind]?.stages.find(({ name }) => name === attempt.stage)
    const report = (words: object) => void hf.remote.progress(session.id, [{ ...mine, ...words }]).catch(() => {})
    const ctx: Context = {
      job: { ...attempt, id: attempt.id as JobId },
      stage: attempt.stage,
      attempt: attempt.attempt,
      signal,
      progress: (done, total, note) => report({ done, total, note }),
      log: (message, data) => report({ log: [{ message, data }] }),
    }
    try {
      return { ...mine, outcome: 'succeeded', output: await stage?.run?.(ctx as never) }
    } catch (thrown) {
      if (signal.aborted) return { ...mine, outcome: 'released' }
      const isPermanent = thrown instanceof PermanentError
      return { ...mine, outcome: 'failed', error: { message: messageOf(thrown), isPermanent } }
    }
  }

  async function settle({ id }: OpenedRemote, { kind }: RemoteAttempt, outcome: RemoteOutcome): Promise<void> {
    const [first] = (await untilAnswered(() => hf.remote.settle(id, [outcome]))) ?? []
    if (kind !== 'afar' || first !== 'settled') return
    // as if the answer had been lost
    await untilAnswered(() => hf.remote.settle(id, [outcome]))
  }

  /** Asks until it is answered: what it asks for may be done twice. Gives up when nothing of it can matter any more. */
  async function untilAnswered<T>(ask: () => Promise<T>): Promise<T | undefined> {
    const untilMs = monotonicMs() + 3 * cellSettings.leaseMs
    while (monotonicMs() < untilMs) {
      try {
        return await ask()
      } catch (error) {
        if (isOver(error)) return undefined
        await pause(50)
      }
    }
    return undefined
  }

  const living = live()
  return {
    async stop() {
      stopping.abort()
      abortAll('shutdown')
      await living
    },
  }
}

function self(kinds: Record<string, AnyJob>) {
  return {
    tenant: 'default',
    pid: process.pid,
    host: 'afar',
    kinds: Object.values(kinds).map(({ kind, stages }) => ({
      name: kind,
      stages: stages.map(({ name, optional }) => ({ name, optional })),
    })),
  }
}

function isOver(error: unknown): boolean {
  return error instanceof HoldfastError && ['session_ended', 'session_not_found', 'not_running'].includes(error.code)
}
