/**
 * The heartbeat, on its own thread and connection, so that a process whose event loop is blocked doesn't look dead. It
 * decides nothing: it tells the main thread what the database confirmed, and when that heartbeat was sent. A lease
 * counts from then, because the database may have read its clock at any time after that.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type pg from 'pg'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { answered } from '../postgres/answer.ts'
import { Client, connectionOptions, drop, isHeldUp } from '../postgres/connection.ts'
import { describe } from '../postgres/error-message.ts'
import { type Runner, runnerIn } from '../postgres/store.ts'
import { monotonicMs } from '../service/clock.ts'
import { GiveBack } from './give-back.ts'
import {
  connectMs,
  type HeartbeatMessage,
  type HeartbeatOrder,
  type HeartbeatTask,
  patienceMs,
} from './heartbeat-task.ts'
import { beat, closeSession, comeBack, lockSession, openSession } from './session.sql.ts'
import { readVitals, type UnresponsiveHandler } from './vitals.ts'

const task = workerData as HeartbeatTask
const port = parentPort as NonNullable<typeof parentPort>
const tell = (message: HeartbeatMessage) => port.postMessage(message)

const ours = { pid: task.facts.pid, host: task.facts.host }
let sessionId = task.sessionId ?? undefined
let isStopping = false
let isPooled = task.isPooled
let backend: number | undefined
let wake: () => void = () => {}
let unresponsive: UnresponsiveHandler[] = []
/** When the session was last confirmed, or when this thread took it over. */
let confirmedAtMs = monotonicMs()
/** Sessions that this process lost while it was alive, and how often it has tried to tell the database so. */
const lost = new Map(task.lost.map((id) => [id, 0]))
const mostTries = 30

const giveBack = new GiveBack({
  url: task.url,
  isPooled: task.isPooled,
  holdMs: task.holdMs,
  connectMs,
  vitals: task.vitals,
  handover: task.handover,
  onGivenBack: (count, blockedMs) => tell({ type: 'gaveBack', count, blockedMs }),
  onError: (error) => tell(errorMessageOf(error)),
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

/** Beats on one connection. Returns when asked to stop; throws when the connection breaks. */
async function beatOn(client: pg.Client): Promise<void> {
  const runner = cancelling(client)
  const broken = new Promise<never>((_, reject) =>
    client.once('error', reject).once('end', () => reject(new Error('Connection terminated'))),
  )
  broken.catch(() => wake())
  backend = undefined
  let isLocked = false
  while (!isStopping) {
    const startedAtMs = monotonicMs()
    tell({ type: 'turned' })
    isLocked = await Promise.race([beatOnce(runner, isLocked), broken]).catch((error) => heldUp(error, isLocked))
    await Promise.race([nap(Math.max(0, task.heartbeatMs - (monotonicMs() - startedAtMs))), broken])
  }
  if (sessionId === undefined) return
  const [closed] = await runner.run(closeSession, { id: sessionId, ...ours })
  if (!closed) await runner.run(comeBack, { id: sessionId, ...ours })
}

/**
 * A runner that cancels slow statements in the server before we stop waiting for them. A statement that waits for a
 * locked row would otherwise keep waiting after we disconnect, holding the session's lock, and so would the next one.
 */
function cancelling(client: pg.Client): Runner {
  const runner = runnerIn(client)
  const dropMs = patienceMs(task)
  const bounds = { answerMs: 0.8 * dropMs, dropMs }
  return { run: (statement, params) => answered(client, runner.run(statement, params), bounds) }
}

/** The server answers, but another transaction has locked our row. Once our lease has certainly expired, we open a new session. */
function heldUp(error: unknown, isLocked: boolean): boolean {
  if (!isHeldUp(error)) throw error
  tell(errorMessageOf(error))
  if (sessionId === undefined || monotonicMs() - confirmedAtMs <= task.facts.leaseMs) return isLocked
  lose(sessionId)
  return false
}

function lose(id: number): void {
  lost.set(id, 0)
  sessionId = undefined
  tell({ type: 'ended', id })
}

/** Tells the database that we lost sessions without crashing. Retries later if one hasn't ended yet or is locked. */
async function comeBackFromLost(runner: Runner): Promise<void> {
  for (const [id, tries] of lost) {
    const [marked] = await runner.run(comeBack, { id, ...ours })
    if (!marked && tries + 1 < mostTries) {
      lost.set(id, tries + 1)
      continue
    }
    lost.delete(id)
    tell({ type: 'outlived', id })
  }
}

async function beatOnce(runner: Runner, wasLocked: boolean): Promise<boolean> {
  if (lost.size > 0) await comeBackFromLost(runner)
  if (sessionId === undefined) {
    const sentAtMs = monotonicMs()
    const [opened] = await runner.run(openSession, task.facts)
    sessionId = (opened as { id: number }).id
    confirmedAtMs = sentAtMs
    tell({ type: 'opened', id: sessionId, sentAtMs })
    wasLocked = false
  }
  const isLocked = !isPooled && (wasLocked || (await takeLock(runner, sessionId)))
  const sentAtMs = monotonicMs()
  const [confirmed] = await runner.run(beat, {
    id: sessionId,
    ...ours,
    isLocked,
    leaseMs: task.facts.leaseMs,
    vitals: readVitals(task.vitals),
    unresponsive,
  })
  if (confirmed) {
    confirmedAtMs = sentAtMs
    tell({ type: 'confirmed', id: sessionId, sentAtMs })
    noteBackend(confirmed.backend)
    return isLocked
  }
  lose(sessionId)
  return beatOnce(runner, false)
}

async function takeLock(runner: Runner, id: number): Promise<boolean> {
  tell({ type: 'turned' })
  const [lock] = await runner.run(lockSession, { id })
  tell({ type: 'turned' })
  if (lock) noteBackend(lock.backend)
  return lock?.is_locked === true
}

function errorMessageOf(error: unknown): HeartbeatMessage {
  const described = describe(error, task.url, connectMs)
  const code = described instanceof HoldfastError ? described.code : null
  return { type: 'error', code, message: messageOf(described) }
}

/** Detects a pooler by a change of backend. The lock stayed with the old one, so from now on only the lease counts. */
function noteBackend(now: number): void {
  if (!isPooled && backend !== undefined && backend !== now) {
    isPooled = true
    tell({ type: 'pooled' })
  }
  backend = now
}

async function main(): Promise<void> {
  let failures = 0
  while (!isStopping) {
    tell({ type: 'turned' })
    const client = new Client({
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
      await beatOn(client)
    } catch (error) {
      failures += 1
      tell({ type: 'cut' })
      tell(errorMessageOf(error))
      // a connection that is merely slow still holds the lock; once we drop it, our jobs may be given to others at once
      if (holdsLock) await nap(task.abortMarginMs)
      else if (!isStopping) await nap(Math.min(500, 25 * 2 ** failures))
    } finally {
      drop(client)
    }
  }
  tell({ type: 'closed' })
  port.close()
}

await main()
