import { messageOf } from '../errors/errors.ts'

/**
 * The system that owns the executions of barriers. It is asked only when a barrier has expired with parts missing. Its answers are checked,
 * because it is another team's program behind a network: any other word does not count as an answer.
 */
export interface Owner {
  /** The status of that tenant's execution: `running`, `final` (it has ended, in whatever way), or `gone` (the owner says that it does not exist). */
  read(execution: string, tenant: string, options: { signal: AbortSignal }): Promise<OwnerStatus | (string & {})>
  /** Marks it failed: `done`, or `skipped` or `no` if it did not. Must not overwrite an execution that has ended. */
  markFailed(
    execution: string,
    tenant: string,
    reason: string,
    options: { signal: AbortSignal },
  ): Promise<MarkAnswer | (string & {})>
}

const statuses = ['running', 'final', 'gone'] as const
const marks = ['done', 'skipped', 'no'] as const

/** The status of an execution. */
export type OwnerStatus = (typeof statuses)[number]
/** The answer to a mark. */
export type MarkAnswer = (typeof marks)[number]

/** What is not an answer: an unknown word, something that is not a word, or an error. */
export type Unclear = { word: 'unknown' | 'garbage'; said: string } | { word: 'failed'; error: unknown }

/** An answer that was checked: one of the expected words, or not an answer. */
export type Answer<Word extends string> = Said<Word> | Unclear
type Said<Word> = Word extends string ? { word: Word } : never

/** An execution, and how long its owner may take to answer. */
export interface Question {
  execution: string
  tenant: string
  timeoutMs: number
  /** Fires when the answer is no longer needed. */
  signal: AbortSignal
}

/** Asks the owner for the status of an execution. Never throws. */
export function readStatus(owner: Owner, question: Question): Promise<Answer<OwnerStatus>> {
  const { execution, tenant } = question
  return asked(statuses, question, (options) => owner.read(execution, tenant, options))
}

/** Asks the owner to mark an execution failed. Never throws; after `failed` it is unknown whether it did. */
export function markFailed(owner: Owner, question: Question, reason: string): Promise<Answer<MarkAnswer>> {
  const { execution, tenant } = question
  return asked(marks, question, (options) => owner.markFailed(execution, tenant, reason, options))
}

async function asked<Word extends string>(
  words: readonly Word[],
  { timeoutMs, signal }: Question,
  ask: (options: { signal: AbortSignal }) => Promise<unknown>,
): Promise<Answer<Word>> {
  const over = new AbortController()
  const stop = () => over.abort(signal.reason)
  const timer = setTimeout(() => over.abort(new Error(`There was no answer within ${timeoutMs} ms.`)), timeoutMs)
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try {
    // an owner that ignores the signal must not delay us either
    return checked(words, await Promise.race([rejection(over.signal), ask({ signal: over.signal })]))
  } catch (error) {
    return { word: 'failed', error: over.signal.aborted ? over.signal.reason : error }
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

function checked<Word extends string>(words: readonly Word[], said: unknown): Answer<Word> {
  const known = words.find((word) => word === said)
  if (known !== undefined) return { word: known } as Said<Word>
  if (typeof said === 'string' && said !== '') return { word: 'unknown', said: messageOf(said) }
  return { word: 'garbage', said: shown(said) }
}

function shown(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 200)
  } catch {
    return `a ${typeof value} that cannot be shown`
  }
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
