/**
 * Waiting for an answer. The invariant: a statement that nobody waits for any more does not keep running in the server, where it would
 * hold locks and might commit unexpectedly. So a late statement is cancelled there, and its error is awaited like any answer. Only a server
 * that does not even answer the cancel counts as unreachable; whether the statement took effect is then unknown.
 */
import type pg from 'pg'
import { requestCancel } from './cancel-request.ts'
import { isCancelled } from './connection.ts'

/** How long an answer may take. */
export interface Bounded {
  /** Before the statement is cancelled. */
  answerMs: number
  /** Before the connection is dropped, if that is later than the cancel and its grace period. */
  dropMs: number
}

/** How long a cancelled statement may take to return its error. */
const graceMs = 2_000

/** Connections with a cancel that has not stopped its statement yet: it could stop the next one instead. */
const cancelPending = new WeakSet<pg.ClientBase>()

/** Whether a cancel may still be on its way to this connection. */
export function isCancelPending(client: pg.ClientBase): boolean {
  return cancelPending.has(client)
}

/** The error of our own cancel, which has to be distinguishable from another's. */
function lateError(answerMs: number, cause: unknown): Error {
  return Object.assign(new Error(`no answer within ${answerMs} ms`, { cause }), { code: '57014' })
}

/** The answer of a query on this connection, or an error once it takes too long. */
export function answered<T>(client: pg.ClientBase, asked: Promise<T>, { answerMs, dropMs }: Bounded): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancelled: Promise<void> | undefined
    const giveUp = () => reject(new Error('Query read timeout'))
    const cancel = () => {
      cancelPending.add(client)
      cancelled = requestCancel(client, graceMs)
      timer = setTimeout(giveUp, Math.max(graceMs, dropMs - answerMs))
    }
    let timer = setTimeout(cancel, answerMs)
    asked.then(
      (answer) => {
        clearTimeout(timer)
        resolve(answer)
      },
      (error) => {
        clearTimeout(timer)
        if (!cancelled || !isCancelled(error)) return reject(error)
        cancelPending.delete(client)
        reject(lateError(answerMs, error))
      },
    )
  })
}
