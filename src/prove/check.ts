import type { Audit } from '../audit/audit.ts'
import { allMoves, announces, finalStates, leadsTo, type MoveName, moves } from '../job/machine.ts'
import type { ContinuedRow } from './barriers.sql.ts'
import type { ExpectedBarrier } from './barriers.ts'
import type { EventRow, JobRow, OutputRow } from './cell-database.sql.ts'
import { badItem } from './fan-out-kinds.ts'
import type { Effect, Output } from './observed.ts'

/** Everything that a finished cell left behind. */
export interface Evidence {
  /** Acknowledged jobs by their idempotency keys. */
  acknowledged: ReadonlyMap<string, { id: string; kind: string }>
  jobs: JobRow[]
  events: EventRow[]
  outputs: OutputRow[]
  effects: readonly Effect[]
  /** The processes that were killed, whose handlers could not report how they ended. */
  killed: ReadonlySet<number>
  barriers: {
    /** How the barriers have to end, by their ids. */
    expected: ReadonlyMap<string, ExpectedBarrier>
    continued: ContinuedRow[]
    /** The executions that their owner was asked to mark failed. Each has the id of its barrier. */
    marks: readonly string[]
  }
}

/** How the jobs of a kind have to end, whatever breaks; all others have to succeed. */
const endings: Record<string, string> = {
  doomed: 'failed',
  usable: 'partial',
  stubborn: 'cancelled',
  unresponsive: 'cancelled',
  tireless: 'cancelled',
  poison: 'failed',
  costly: 'partial',
  torn: 'partial',
  flawed: 'partial',
  'over-threshold': 'failed',
  drawn: 'cancelled',
  'remote-usable': 'partial',
}

/** How a job has to end; undefined if that depends on a race. */
function endingOf({ kind, is_part, position }: JobRow): string | undefined {
  // the job of a slot that a later one replaces, unless it was quicker
  if (kind === 'replaceable') return undefined
  // whether one was replaced before it started; its scenario knows which must succeed
  if (kind === 'unique') return undefined
  if (!is_part) return endings[kind] ?? 'succeeded'
  if (kind === 'over-threshold') return position === badItem ? 'failed' : undefined
  if (kind === 'flawed') return position === badItem ? 'failed' : 'succeeded'
  return kind === 'drawn' ? 'cancelled' : 'succeeded'
}

/** Everything that is wrong with the outcome of a cell, each as a sentence. */
export function findWrongs(evidence: Evidence): string[] {
  return [
    ...lostJobs(evidence),
    ...wrongEndings(evidence),
    ...wrongSettles(evidence),
    ...wrongOutputs(evidence),
    ...doubleRuns(evidence),
    ...wrongContinuations(evidence),
    ...wrongMarks(evidence),
  ]
}

const typesOf = (names: MoveName[]) => new Set(names.map(announces).filter((type) => type !== null) as string[])
const finalTypes = typesOf(allMoves.filter((move) => leadsTo(move).every((to) => finalStates.some((s) => s === to))))
/** The events that end an attempt: those of every announced move that starts from running. */
const settleTypes = typesOf(allMoves.filter((move) => (moves[move].from as readonly string[]).includes('running')))
const outputTypes = typesOf(['advance', 'finish'])

function lostJobs({ acknowledged, jobs }: Evidence): string[] {
  return [...acknowledged]
    .filter(([, { id }]) => !jobs.some((job) => job.id === id))
    .map(([key, { id }]) => `job ${id} (${key}) was acknowledged, but does not exist`)
}

function wrongEndings({ jobs }: Evidence): string[] {
  return jobs.flatMap((job) => {
    const ending = endingOf(job)
    if (ending === undefined || job.state === ending) return []
    const item = job.is_part ? `, item ${job.position}` : ''
    return [`job ${job.id} (${job.kind}${item}) is ${job.state} instead of ${ending}`]
  })
}

function wrongSettles({ jobs, events }: Evidence): string[] {
  return jobs.flatMap((job) => {
    const mine = events.filter((event) => event.job_id === job.id)
    const count = (types: ReadonlySet<string>) => mine.filter(({ type }) => types.has(type)).length
    const rounds = 1 + count(typesOf(['redo']))
    const wrongs: string[] = []
    if (count(finalTypes) !== rounds)
      wrongs.push(`job ${job.id} (${job.kind}) has ${count(finalTypes)} final events in ${rounds} rounds`)
    if (count(typesOf(['submit'])) !== 1)
      wrongs.push(`job ${job.id} (${job.kind}) was announced ${count(typesOf(['submit']))} times`)
    const settled = mine
      .filter(({ type, attempt }) => settleTypes.has(type) && attempt > 0)
      .map(({ attempt }) => attempt)
    // a job that is cancelled after it was queued again still has the number of its last attempt
    for (const attempt of repeated(settled))
      if (!isCancelledLater(mine, attempt))
        wrongs.push(`attempt ${attempt} of job ${job.id} (${job.kind}) was settled more than once`)
    return wrongs
  })
}

function isCancelledLater(mine: EventRow[], attempt: number): boolean {
  const types = mine.filter((event) => event.attempt === attempt && settleTypes.has(event.type)).map(({ type }) => type)
  return types.length === 2 && types[1] === announces('cancel') && !finalTypes.has(types[0] as string)
}

function wrongOutputs({ outputs, events, effects }: Evidence): string[] {
  return outputs.flatMap(({ job_id, stage, name, attempt, output }) => {
    const returned = output as Output | null
    // the last one: a redo runs a stage once more
    const winner = events.findLast(
      (event) => event.job_id === job_id && event.stage === stage && outputTypes.has(event.type),
    )
    const run = effects.find((effect) => effect.jobId === job_id && effect.token === returned?.token)
    const what = `the output of stage ${name} of job ${job_id}`
    if (!winner) return [`${what} was committed, but no event announces it`]
    if (winner.attempt !== attempt || returned?.attempt !== attempt)
      return [`${what} is of attempt ${returned?.attempt}, stored as ${attempt}, announced as ${winner.attempt}`]
    if (run?.attempt !== attempt || run.stage !== name) return [`${what} was not returned by any run of that attempt`]
    return []
  })
}

function doubleRuns({ effects }: Evidence): string[] {
  const runs = effects
    .filter(({ what }) => what === 'started')
    .map(({ jobId, attempt }) => `${jobId} attempt ${attempt}`)
  return repeated(runs).map((run) => `job ${run} was run twice`)
}

/** Of all armings of a barrier only the last one fires, and only once. Each has a job of its own, so a second firing would be seen. */
function wrongContinuations({ barriers: { expected, continued } }: Evidence): string[] {
  return [...expected].flatMap(([id, { ending, job }]) => {
    const due = ending === 'fired' ? [job] : []
    const fired = continued.filter(({ barrier }) => barrier === id).map(({ job_id }) => job_id)
    if (fired.length === due.length && fired.every((one) => due.includes(one))) return []
    return [
      `the barrier ${id} (${ending}) has fired ${fired.join(', ') || 'nothing'} instead of ${due[0] ?? 'nothing'}`,
    ]
  })
}

/** Exactly the executions whose barrier expired are marked. Twice does no harm: a leader may die between the mark and its commit. */
function wrongMarks({ barriers: { expected, marks } }: Evidence): string[] {
  return [...expected]
    .filter(([id, { ending }]) => marks.includes(id) !== (ending === 'marked'))
    .map(
      ([id, { ending }]) =>
        `the execution of the barrier ${id} (${ending}) was ${marks.includes(id) ? '' : 'not '}marked`,
    )
}

/**
 * Handlers that were aborted after their successors had started. The fence holds anyway; this is about timing, and an overloaded machine
 * can make a process late.
 */
export function findOverlaps({ effects, killed }: Pick<Evidence, 'effects' | 'killed'>): string[] {
  const started = effects.filter(({ what }) => what === 'started').sort((a, b) => a.attempt - b.attempt)
  return started.flatMap((run) => {
    const next = started.find((other) => other.jobId === run.jobId && other.attempt > run.attempt)
    if (!next || killed.has(Number(run.token.split('-')[0]))) return []
    const end = effects.find(({ what, token }) => what === 'ended' && token === run.token)
    if (end && end.atMs <= next.atMs) return []
    const late = end ? `was told to stop ${Math.round(end.atMs - next.atMs)} ms too late` : 'was never told to stop'
    return [`attempt ${run.attempt} of job ${run.jobId} ${late}: attempt ${next.attempt} had started`]
  })
}

function repeated<T>(items: T[]): T[] {
  return [...new Set(items.filter((item, index) => items.indexOf(item) !== index))]
}

/** What an audit found, as sentences. */
export function sentencesOf({ violations, unfinished }: Audit): string[] {
  const broken = violations.map(({ invariant, total, examples: [first] }) => {
    return `audit: ${invariant} is broken ${total} times; first ${first?.subject}: ${first?.found}`
  })
  return [...broken, ...unfinished.map((invariant) => `audit: ${invariant} could not be checked in time`)]
}
