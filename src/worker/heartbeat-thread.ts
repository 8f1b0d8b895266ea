/**
 * The heartbeat, on a thread and a connection of its own, so that a handler that blocks the event loop does not look dead.
 * It decides nothing: it tells the main thread what the database confirmed, and when the question was sent. A lease counts
 * from the sending, because the database's clock may have read it at any moment after.
 */
import { parentPort, workerData } from 'node:worker_threads'
import pg from 'pg'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { answered } from '../store/answer.ts'
import { connectionOptions, drop, isHeldUp } from '../store/connection.ts'
import { describe } from '../store/describe.ts'
import { type Runner, runnerIn } from '../store/store.ts'
import { GiveBack } from './give-back.ts'
import { connectMs, type HeartbeatNews, type HeartbeatOrder, type HeartbeatTask, patienceMs } from './heartbeat-task.ts'
import { beat, closeSession, comeBack, lockSession, openSession } from './session.sql.ts'
import { readVitals, type UnresponsiveHandler } from './vitals.ts'

const task = workerData as HeartbeatTask
const port = parentPort as NonNullable<typeof parentPort>
const tell = (news: HeartbeatNews) => port.postMessage(news)
const monotonicMs = () => Number(process.hrtime.bigint() / 1000n) / 1000

let sessionId = task.sessionId ?? undefined
let isStopping = false
let isPooled = task.isPooled
let backend: number | undefined
let wake: () => void = () => {}
let unresponsive: UnresponsiveHandler[] = []
/** When the session was last confirmed, or this thread took it over. */
let confirmedAtMs = monotonicMs()
/** Sessions that we lost although we live, and how often the database was told so. */
const lost = new Map<number, number>()
const mostTellings = 30

const giveBack = new GiveBack({
  url: task.url,
  isPooled: task.isPooled,
  holdMs: task.holdMs,
  connectMs,
  vitals: task.vitals,
  handover: task.handover,
  onGivenBack: (count, blockedMs) => tell({ news: 'gaveBack', count, blockedMs }),
  onTrouble: (error) => tell(troubleOf(error)),
})
const lookMs = Math.min(250, Math.max(25, task.holdMs / 4))
setInterval(() => void giveBack.look(), lookMs).unref()

port.on('message', (order: HeartbeatOrder) => {
  if (order === 'stop') {
    isStopping = true
    wake()
  } else if ('prefetched' in order) giveBack.prefetched(order.prefetched)
  else if ('claiming' in order) giveBack.claiming(order.claiming)
  else unresponsive = order.unresponsive
})

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    wake = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}

/** Lives as long as one connection does. Returns when asked to stop; throws when the connection breaks. */
async function liveOn(client: pg.Client): Promise<void> {
  const runner = cancelling(client)
  const broken = new Promise<never>((_, reject) =>
    client.once('error', reject).once('end', () => reject(new Error('Connection terminated'))),
  )
  broken.catch(() => wake())
  backend = undefined
  let isLocked = false
  while (!isStopping) {
    const startedAtMs = monotonicMs()
    tell({ news: 'turned' })
    isLocked = await Promise.race([beatOnce(runner, isLocked), broken]).catch((error) => heldUp(error, isLocked))
    await Promise.race([nap(Math.max(0, task.heartbeatMs - (monotonicMs() - startedAtMs))), broken])
  }
  if (sessionId === undefined) return
  const [closed] = await runner.run(closeSession, { id: sessionId })
  if (!closed) await runner.run(comeBack, { id: sessionId })
}

/**
 * A runner that asks the server to stop what takes long, before our patience ends. A statement that waits for a row which a stranger holds
 * would wait on in the server after we hung up, with the session's lock, and so would each that follows it.
 */
function cancelling(client: pg.Client): Runner {
  const runner = runnerIn(client)
  const dropMs = patienceMs(task)
  const bounds = { answerMs: 0.8 * dropMs, dropMs }
  return { run: (statement, params) => answered(client, runner.run(statement, params), bounds) }
}

/** The server answers, but somebody holds our row. Once our lease is over by any clock, we go on under another session. */
function heldUp(error: unknown, isLocked: boolean): boolean {
  if (!isHeldUp(error)) throw error
  tell(troubleOf(error))
  if (sessionId === undefined || monotonicMs() - confirmedAtMs <= task.facts.leaseMs) return isLocked
  lose(sessionId)
  return false
}

function lose(id: number): void {
  lost.set(id, 0)
  sessionId = undefined
  tell({ news: 'ended', id })
}

/** Tells the database of lost sessions that nobody crashed. One that was not ended yet, or that somebody holds, is told of again. */
async function comeBackFromLost(runner: Runner): Promise<void> {
  for (const [id, tellings] of lost) {
    const [told] = await runner.run(comeBack, { id })
    if (told || tellings + 1 >= mostTellings) lost.delete(id)
    else lost.set(id, tellings + 1)
  }
}

async function beatOnce(runner: Runner, wasLocked: boolean): Promise<boolean> {
  if (lost.size > 0) await comeBackFromLost(runner)
  if (sessionId === undefined) {
    const sentAtMs = monotonicMs()
    const [opened] = await runner.run(openSession, task.facts)
    sessionId = (opened as { id: number }).id
    confirmedAtMs = sentAtMs
    tell({ news: 'opened', id: sessionId, sentAtMs })
    wasLocked = false
  }
  const isLocked = !isPooled && (wasLocked || (await takeLock(runner, sessionId)))
  const sentAtMs = monotonicMs()
  const [confirmed] = await runner.run(beat, {
    id: sessionId,
    isLocked,
    leaseMs: task.facts.leaseMs,
    vitals: readVitals(task.vitals),
    unresponsive,
  })
  if (confirmed) {
    confirmedAtMs = sentAtMs
    tell({ news: 'confirmed', id: sessionId, sentAtMs })
    noteBackend(confirmed.backend)
    return isLocked
  }
  lose(sessionId)
  return beatOnce(runner, false)
}

async function takeLock(runner: Runner, id: number): Promise<boolean> {
  tell({ news: 'turned' })
  const [lock] = await runner.run(lockSession, { id })
  tell({ news: 'turned' })
  if (lock) noteBackend(lock.backend)
  return lock?.is_locked === true
}

function troubleOf(error: unknown): HeartbeatNews {
  const told = describe(error, task.url, connectMs)
  return { news: 'trouble', code: told instanceof HoldfastError ? told.code : null, message: messageOf(told) }
}

/** A connection to the server itself keeps its backend. With another one the lock has stayed behind, so only the lease counts from here on. */
function noteBackend(now: number): void {
  if (!isPooled && backend !== undefined && backend !== now) {
    isPooled = true
    tell({ news: 'pooled' })
  }
  backend = now
}

async function main(): Promise<void> {
  let failures = 0
  while (!isStopping) {
    tell({ news: 'turned' })
    const client = new pg.Client({
      ...connectionOptions(task.url),
      connectionTimeoutMillis: connectMs,
      query_timeout: patienceMs(task),
    })
    let holdsLock = false
    const noteLoss = () => {
      holdsLock = false
    }
    client.on('error', noteLoss).once('end', noteLoss)
    try {
      await client.connect()
      failures = 0
      holdsLock = !isPooled
      await liveOn(client)
    } catch (error) {
      failures += 1
      tell({ news: 'cut' })
      tell(troubleOf(error))
      // a connection that is merely slow still holds the lock; once it is dropped, our jobs may be given away at once
      if (holdsLock) await nap(task.abortMarginMs)
      else if (!isStopping) await nap(Math.min(500, 25 * 2 ** failures))
    } finally {
      drop(client)
    }
  }
  tell({ news: 'closed' })
  port.close()
}

await main()
