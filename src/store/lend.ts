import type pg from 'pg'

/** Lends the connections of a pool. */
export interface Lender {
  take(): Promise<pg.PoolClient>
  /** Takes one back, or drops it. */
  giveBack(client: pg.PoolClient, isUnfit: boolean): void
}

// about what a server takes to make a connection
const leastPatienceMs = 50
const mostPatienceMs = 500
// on a machine that is so busy that statements take long, more connections only make it busier
const worthStatements = 5
// the loops of an idle process meet a few times a second, for some milliseconds; who waits longer has work for another connection
const waitShare = 0.5
const waitMostMs = 500

/**
 * Makes a lender that is slow to grow its pool. The loops of an idle process ask at the same moments, for a millisecond each: without
 * patience each of them would keep a connection of its own, and thirty idle workers would fill a server. So while all connections are lent,
 * one that is wanted waits for as long as a few statements take before it is made.
 */
export function makeLender(pool: pg.Pool, most: number): Lender {
  const waiting: (() => void)[] = []
  const lentAtMs = new WeakMap<pg.PoolClient, number>()
  let lent = 0
  let usualMs = 0
  let waitLeftMs = waitMostMs
  let countedAtMs = performance.now()

  function patienceMs(): number {
    return Math.min(mostPatienceMs, Math.max(leastPatienceMs, worthStatements * usualMs))
  }

  /** Whether little time was waited of late. Without this, a busy process would share one connection for ever, never waiting long at once. */
  function mayWait(): boolean {
    const nowMs = performance.now()
    waitLeftMs = Math.min(waitMostMs, waitLeftMs + (nowMs - countedAtMs) * waitShare)
    countedAtMs = nowMs
    return waitLeftMs > 0
  }

  /** A running mean; one that waited for a lock says nothing about the others. */
  function learn(client: pg.PoolClient): void {
    const tookMs = performance.now() - (lentAtMs.get(client) ?? performance.now())
    usualMs += 0.1 * (Math.min(tookMs, mostPatienceMs) - usualMs)
  }

  /** Waits until a connection is passed on, or until it is time to make one. */
  function wait(): Promise<void> {
    const sinceMs = performance.now()
    return new Promise((resolve) => {
      const go = () => {
        waitLeftMs -= performance.now() - sinceMs
        resolve()
      }
      const passOn = () => {
        clearTimeout(timer)
        go()
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(passOn), 1)
        lent += 1
        go()
      }, patienceMs())
      waiting.push(passOn)
    })
  }

  /** What comes back is passed on to who waited longest, before somebody else can ask for it. */
  function cameBack(): void {
    const next = waiting.shift()
    if (next) next()
    else lent -= 1
  }

  return {
    async take() {
      const isGrowing = lent > 0 && lent >= pool.totalCount && pool.totalCount < most
      if (isGrowing && mayWait()) await wait()
      else lent += 1
      try {
        const client = await pool.connect()
        lentAtMs.set(client, performance.now())
        return client
      } catch (error) {
        cameBack()
        throw error
      }
    },
    giveBack(client, isUnfit) {
      learn(client)
      client.release(isUnfit)
      cameBack()
    },
  }
}
