/**
 * One leader at a time.
 *
 * The invariant: whoever acts as leader holds the row's term under a lease that has not run out by the database's clock.
 * The row keeps it: a term is taken only when the last lease is over, and renewed only by its holder. This process
 * trusts a confirmed lease only until shortly before its end, counted on its own monotonic clock from the sending of the
 * question; past that it stops acting although nobody told it to. Two leaders may still overlap for the length of one
 * statement under way; that is harmless, because every duty is guarded by the law and may run twice at once.
 *
 * That is also why a stranger who holds the row locked stops nobody: once the lead has been vacant for longer than an election takes, and
 * can't be taken, every candidate stands in for the leader until it can.
 */
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { type Loop, loop, type Service } from '../service/service.ts'
import { type Runner, tellingRunner } from '../store/store.ts'
import { acquireLead, releaseLead, renewLead } from './leader.sql.ts'

/** A candidate, which leads at times. */
export interface Leader extends Service {
  /** The term that this process leads in at this moment; null if it does not. */
  term(): number | null
  /** Notes that a sweep of this term is done; the next renewal writes it down. */
  swept(sweepMs: number): void
  /** How long its loop has given no sign of life. */
  quietMs(): number
}

/** What a candidate needs. */
export interface LeaderOptions {
  store: Runner
  leaseMs: number
  renewMs: number
  /** Whether this process does what a leader is for. One that does not lets another lead. */
  isFit?: () => boolean
  /** Nobody led for so long by the database's clock: it could not be reached, or its clock was set forward. Called before this process leads. */
  onGap?: (gapMs: number) => Promise<unknown>
  onElected: (term: number) => void
  onDeposed: (term: number, why: string) => void
  onTrouble: (error: unknown) => void
}

const monotonicMs = () => Number(process.hrtime.bigint() / 1000n) / 1000

/** Makes a candidate. */
export function makeLeader(options: LeaderOptions): Leader {
  const { leaseMs } = options
  const store = tellingRunner(options.store, () => clock.beat())
  const holder = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  // a lease is trusted for all but its last tenth: time enough for a statement that was just sent
  const trustMs = leaseMs * 0.9
  // an election takes a lease and one look; the rest is for looks that are slow
  const vacantMs = leaseMs + 2 * options.renewMs + 500
  let sweepMs: number | null = null
  let led: { term: number; trustedUntilMs: number; isStandIn: boolean } | undefined
  let vacantSinceMs: number | null = null

  function term(): number | null {
    return led && monotonicMs() < led.trustedUntilMs ? led.term : null
  }

  function depose(why: string): void {
    if (!led) return
    const { term } = led
    led = undefined
    options.onDeposed(term, why)
  }

  async function renew(): Promise<void> {
    if (!led || led.isStandIn) return
    const sentAtMs = monotonicMs()
    try {
      // an answer that comes after the lease is of no use
      const [renewed] = await store.run(renewLead, { holder, term: led.term, leaseMs, sweepMs }, leaseMs)
      sweepMs = null
      if (renewed) led = { term: renewed.term, trustedUntilMs: sentAtMs + trustMs, isStandIn: false }
      else depose('the renewal was refused')
    } catch (error) {
      depose('the renewal failed')
      options.onTrouble(error)
    }
  }

  async function acquire(): Promise<void> {
    const sentAtMs = monotonicMs()
    const [found] = await store.run(acquireLead, { holder, leaseMs, vacantMs })
    if (found?.gap_ms) await options.onGap?.(found.gap_ms)
    const isVacant = found?.is_taken === false
    vacantSinceMs = isVacant ? (vacantSinceMs ?? sentAtMs) : null
    if (found && (found.is_taken || sentAtMs - (vacantSinceMs ?? sentAtMs) >= vacantMs)) lead(found, sentAtMs)
    else if (led) depose('the lead can be taken again')
  }

  function lead({ term, is_taken }: { term: number; is_taken: boolean }, sentAtMs: number): void {
    const isNews = !led || is_taken
    led = { term, trustedUntilMs: sentAtMs + trustMs, isStandIn: !is_taken }
    if (isNews) options.onElected(term)
  }

  async function release(why: string): Promise<void> {
    const last = led
    depose(why)
    if (last && !last.isStandIn) await store.run(releaseLead, { holder, term: last.term }).catch(options.onTrouble)
  }

  const clock: Loop = loop({
    async turn() {
      if (options.isFit?.() === false) await release('it no longer does its duties')
      else {
        await renew()
        if (!led || led.isStandIn) await acquire()
      }
      return options.renewMs
    },
    onError: options.onTrouble,
    errorPauseMs: options.renewMs,
  })

  return {
    term,
    quietMs: () => clock.quietMs(),
    start: () => clock.start(),
    async stop() {
      await clock.stop()
      await release('it stops')
    },
    swept(lastMs) {
      sweepMs = lastMs
    },
  }
}
