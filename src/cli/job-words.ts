import type { JobSummary } from '../engine/job.ts'
import { isFinal, type State } from '../job/machine.ts'
import { type Look, oneLine } from './terminal.ts'
import { lengthWords } from './time-words.ts'

/** What is known of a kind's stages. */
export type StageNames = readonly { name: string; optional: boolean }[]

/** How a state looks. */
export const looks: Record<State, Look> = {
  queued: 'cyan',
  running: 'blue',
  waiting: 'magenta',
  succeeded: 'green',
  partial: 'yellow',
  failed: 'red',
  cancelled: 'dim',
}

/** The stage that a number means, as `fields 1/2`; the bare number for a kind that nobody registered. */
export function stageWords(stages: StageNames | undefined, stage: number): string {
  const found = stages?.[stage]
  return found ? `${found.name} ${stage + 1}/${stages.length}` : String(stage + 1)
}

/** A job that is queued for later says so. */
export function stateWords({ state, runAt, failures }: JobSummary, nowMs = Date.now()): string {
  const inMs = runAt ? runAt.getTime() - nowMs : 0
  if (state !== 'queued' || inMs < 1_000) return state
  return `${state} (${failures > 0 ? 'again ' : ''}in ${lengthWords(inMs)})`
}

/** How long a job took, or has taken so far. */
export function spanWords(job: JobSummary, nowMs = Date.now()): string {
  const endMs = job.finishedAt?.getTime() ?? nowMs
  const words = lengthWords(endMs - job.submittedAt.getTime())
  return isFinal(job.state) ? `ended after ${words}` : `submitted ${words} ago`
}

/** An event, as the live view and a timeline show it. */
export interface EventWords {
  what: string
  look: Look | undefined
  note: string
}

interface Told {
  type: string
  stage: number
  data: unknown
  at: Date
}

const eventLooks: Record<string, Look> = {
  submitted: 'cyan',
  fanned_out: 'magenta',
  joined: 'magenta',
  finished: 'green',
  failed: 'red',
  quarantined: 'red',
  partial: 'yellow',
  retried: 'yellow',
  released: 'yellow',
  revived: 'yellow',
  cancelled: 'dim',
  log: 'dim',
  'webhook.disabled': 'red',
  'key.revoked': 'yellow',
}

/** What happened, in a word and a note. */
export function eventWords(event: Told, stages: StageNames | undefined): EventWords {
  const word = event.type.replace(/^job\./, '')
  const isPartial = word === 'failed' && stages?.[event.stage]?.optional === true
  const what = isPartial ? 'partial' : word
  return { what, look: eventLooks[what], note: oneLine(noteOf(event)) }
}

/** Why an event came about, as far as it tells: an error, a reason, a rung of the recovery ladder, and who did it. */
export function noteOf({ data, at }: Pick<Told, 'data' | 'at'>): string {
  if (typeof data !== 'object' || data === null) return ''
  const {
    message,
    reason,
    error,
    why,
    rung,
    exit,
    by,
    runAt,
    items,
    name,
    scopes,
    origin,
    group,
    queue,
    repair,
    data: more,
  } = data as Record<string, unknown>
  const lost = rung === undefined || exit === undefined ? rung : `${rung}, ${exit}`
  const told = message ?? reason ?? (error as { message?: unknown } | undefined)?.message ?? why ?? lost
  const about = told ?? origin ?? group ?? queue ?? repair
  const words = about === undefined ? [] : [String(about)]
  if (typeof name === 'string' && Array.isArray(scopes)) words.push(`${name}: ${scopes.join(', ')}`)
  if (typeof by === 'string') words.push(`(by ${by})`)
  if (typeof items === 'number') words.push(`${items} items`)
  if (more !== undefined) words.push(JSON.stringify(more))
  if (typeof runAt === 'string') words.push(`(again in ${lengthWords(new Date(runAt).getTime() - at.getTime())})`)
  return words.join(' ')
}
