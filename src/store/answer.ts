/**
 * Waiting for an answer. The invariant: a statement that nobody waits for any more does not run on in the server, where it would hold
 * locks and might commit when nobody expects it. So one that is late is cancelled there, and its error is awaited like any answer; only a
 * server that does not even answer the cancel counts as out of reach, and then nobody knows what became of the statement.
 */
import type pg from 'pg'
import { requestCancel } from './cancel-request.ts'
import { isCancelled } from './connection.ts'

/** How long an answer may take. */
export interface Bounded {
  /** Before the statement is cancelled. */
  answerMs: number
  /** Before the connection is given up, if that is later than the cancel and its grace. */
  dropMs: number
}

/** How long a cancelled statement may take to say so. */
const graceMs = 2_000

/** Connections to which a cancel was sent that did not stop the statement it was meant for: it could stop the next one. */
const cancelPending = new WeakSet<pg.ClientBase>()

/** Whether a cancel may still be on its way to this connection. */
export function isCancelPending(client: pg.ClientBase): boolean {
  return cancelPending.has(client)
}

/** Our own cancel, told apart from one by somebody else. */
function lateError(answerMs: number, cause: unknown): Error {
  return Object.assign(new Error(`no answer within ${answerMs} ms`, { cause }), { code: '57014' })
}

/** The answer to what was asked on this connection. */
export function answered<T>(client: pg.ClientBase, asked: Promise<T>, { answerMs, dropMs }: Bounded): Promise<T> {
  return new Promise((resolve, reject) => {
    let cancelled: Promise<void> | undefined
    const give = () => reject(new Error('Query read timeout'))
    const cancel = () => {
      cancelPending.add(client)
      cancelled = requestCancel(client, graceMs)
      timer = setTimeout(give, Math.max(graceMs, dropMs - answerMs))
    }
    let timer = setTimeout(cancel, answerMs)
    asked.then(
      (answer) => {
        clearTimeout(timer)
        resolve(answer)
      },
      (error) => {
        clearTimeout(timer)
        if (!cancelled) return reject(error)
        if (!isCancelled(error)) return reject(error)
        cancelPending.delete(client)
        reject(lateError(answerMs, error))
      },
    )
  })
}
