/**
 * The state machine: every state of a job and every move between them, declared once. Types, SQL guards, the database's own checks and the
 * diagram in the docs derive from the two tables below; a list of states is written nowhere else.
 */
export const states = {
  queued: { isFinal: false, meaning: 'waits for a worker, or for its run_at' },
  running: { isFinal: false, meaning: 'one worker holds it under a lease' },
  waiting: { isFinal: false, meaning: 'fanned out; waits for its items' },
  succeeded: { isFinal: true, meaning: 'all stages are done' },
  partial: { isFinal: true, meaning: 'a usable but incomplete result' },
  failed: { isFinal: true, meaning: 'out of retries or crash budget, or a permanent error' },
  cancelled: { isFinal: true, meaning: 'someone cancelled it' },
} as const satisfies Record<string, { isFinal: boolean; meaning: string }>

/** The state of a job. */
export type State = keyof typeof states

type LiveStateOf<S extends State> = S extends State ? ((typeof states)[S]['isFinal'] extends false ? S : never) : never
/** A state that something automatic will leave. */
export type LiveState = LiveStateOf<State>
/** A state that nothing automatic leaves. */
export type FinalState = Exclude<State, LiveState>

/** Who may make a move. */
export type Actor = 'client' | 'worker' | 'reaper'

interface Move {
  readonly from: readonly State[]
  readonly to: readonly State[]
  readonly by: Actor
  /** Whether the write must carry the fence of an attempt. */
  readonly isFenced: boolean
  /** The event that announces the move. A claim has none, because it would double the cost of a job. */
  readonly announces: string | null
  readonly note: string
}

/** Every legal move of a job. */
export const moves = {
  submit: {
    from: [],
    to: ['queued'],
    by: 'client',
    isFenced: false,
    announces: 'job.submitted',
    note: 'one insert; the same key and input return the same job',
  },
  claim: {
    from: ['queued'],
    to: ['running'],
    by: 'worker',
    isFenced: false,
    announces: null,
    note: 'attempt + 1, session, deadline; never before run_at',
  },
  advance: {
    from: ['running'],
    to: ['queued'],
    by: 'worker',
    isFenced: true,
    announces: 'job.advanced',
    note: "commits the stage's output, stage + 1",
  },
  fanOut: {
    from: ['running'],
    to: ['waiting'],
    by: 'worker',
    isFenced: true,
    announces: 'job.fanned_out',
    note: 'opens a barrier over the items and fixes their number',
  },
  join: {
    from: ['waiting'],
    to: ['queued'],
    by: 'reaper',
    isFenced: false,
    announces: 'job.joined',
    note: 'exactly once, when the last item settles',
  },
  finish: {
    from: ['running'],
    to: ['succeeded', 'partial'],
    by: 'worker',
    isFenced: true,
    announces: 'job.finished',
    note: 'the last stage returned',
  },
  retry: {
    from: ['running'],
    to: ['queued'],
    by: 'worker',
    isFenced: true,
    announces: 'job.retried',
    note: 'failures + 1, run_at = durable backoff',
  },
  fail: {
    from: ['running'],
    to: ['failed', 'partial'],
    by: 'worker',
    isFenced: true,
    announces: 'job.failed',
    note: 'out of retries, or a permanent error; partial if the stage is optional',
  },
  release: {
    from: ['running'],
    to: ['queued'],
    by: 'worker',
    isFenced: true,
    announces: 'job.released',
    note: 'graceful stop; costs no retry',
  },
  snooze: {
    from: ['running'],
    to: ['queued'],
    by: 'worker',
    isFenced: true,
    announces: 'job.snoozed',
    note: 'until a later time, or until a signal comes; costs no retry',
  },
  revive: {
    from: ['running'],
    to: ['queued'],
    by: 'reaper',
    isFenced: false,
    announces: 'job.revived',
    note: 'its worker was lost: crashes + 1, unless the worker came back; costs no retry',
  },
  quarantine: {
    from: ['running'],
    to: ['failed', 'partial'],
    by: 'reaper',
    isFenced: false,
    announces: 'job.quarantined',
    note: 'crash budget exhausted; partial if the stage is optional',
  },
  cancel: {
    from: ['queued', 'running', 'waiting'],
    to: ['cancelled'],
    by: 'client',
    isFenced: false,
    announces: 'job.cancelled',
    note: 'if moves race, the first to lock the row wins',
  },
  redo: {
    from: ['failed', 'partial', 'cancelled'],
    to: ['queued'],
    by: 'client',
    isFenced: false,
    announces: 'job.redone',
    note: 'from the failed stage, or from the start',
  },
} as const satisfies Record<string, Move>

/** The name of a move. */
export type MoveName = keyof typeof moves
/** The event type that a move announces. */
export type EventType = Exclude<(typeof moves)[MoveName]['announces'], null>

/** All states, in the order of a job's life. */
export const allStates = Object.keys(states) as State[]
/** All moves, in the order of a job's life. */
export const allMoves = Object.keys(moves) as MoveName[]
/** The states that something automatic will leave. */
export const liveStates = allStates.filter((state) => !states[state].isFinal) as LiveState[]
/** The states that nothing automatic leaves. */
export const finalStates = allStates.filter((state) => states[state].isFinal) as FinalState[]

/** Whether a string from outside is a state. */
export function isState(word: string): word is State {
  return Object.hasOwn(states, word)
}

/** Whether a state is final: nothing automatic leaves it. */
export function isFinal(state: State): state is FinalState {
  return states[state].isFinal
}

/** Whether a job in this state can make this move. */
export function can(move: MoveName, state: State): boolean {
  return legalFrom(move).includes(state)
}

/** The states that a move may start from. */
export function legalFrom(move: MoveName): readonly State[] {
  return moves[move].from
}

/** The states that a move may lead to. */
export function leadsTo(move: MoveName): readonly State[] {
  return moves[move].to
}

/** Whether a move always leads to a final state. */
export function isEnding(move: MoveName): boolean {
  return leadsTo(move).every(isFinal)
}

/** The event type that announces a move; null for a move that is not announced. */
export function announces(move: MoveName): EventType | null {
  return moves[move].announces
}

/** All pairs of states that a move connects, each once. */
export function legalPairs(): [from: State, to: State][] {
  const pairs = new Map<string, [State, State]>()
  for (const name of allMoves) {
    for (const from of legalFrom(name)) for (const to of leadsTo(name)) pairs.set(`${from}>${to}`, [from, to])
  }
  return [...pairs.values()]
}
