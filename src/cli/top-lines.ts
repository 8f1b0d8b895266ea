import type { Backlog } from '../engine/deliveries.ts'
import type { Group } from '../engine/groups.ts'
import type { Queue } from '../engine/queues.ts'
import type { Recovery, Revival, Stranded } from '../engine/recovery.ts'
import type { Session } from '../engine/sessions.ts'
import { pauseWords } from '../why/queued.ts'
import { holderWords } from './event-words.ts'
import { shortId } from './pick-job.ts'
import { type Cell, table } from './table.ts'
import { type Look, oneLine, paint, type Target } from './terminal.ts'
import { ageWords, clockWords, lengthWords } from './time-words.ts'
import type { Picture, Rates } from './top-picture.ts'

/** The picture as lines: the whole in a few of them, then the parts as tables. */
export function pictureLines(picture: Picture, target: Target = process.stdout): string[] {
  const { at, rates, queues, sessions, recovery, groups, deliveries } = picture
  const nowMs = at.getTime()
  const fact = (name: string, value: string) => `${paint('bold', name.padEnd(9), target)} ${value}`
  const part = (heads: string[], rows: Cell[][]) => (rows.length === 0 ? [] : ['', ...table(heads, rows, target)])
  return [
    fact('jobs', rateWords(rates)),
    fact('leader', leaderWords(recovery, nowMs, target)),
    fact('orphans', orphanWords(picture, target)),
    fact('webhooks', backlogWords(deliveries, target)),
    ...(queues.length === 0 ? ['', 'No queues yet: nothing was submitted, and no worker has started.'] : []),
    ...part(queueHeads, queues.map(queueRow)),
    ...part(strandedHeads, recovery.stranded.slice(0, mostStranded).map(strandedRow)),
    ...part(
      sessionHeads,
      sessions.map((session) => sessionRow(session, nowMs)),
    ),
    ...part(groupHeads, groups.map(groupRow)),
    ...part(revivalHeads, recovery.revivals.slice(0, mostRevivals).map(revivalRow)),
  ]
}

const mostRevivals = 5
const mostStranded = 10

function rateWords(rates: Rates | null): string {
  if (rates === null) return 'rates are known in a moment'
  const { submitted, finished, failed } = rates
  return `${perSecond(submitted)} submitted, ${perSecond(finished)} finished, ${perSecond(failed)} failed`
}

function perSecond(rate: number): string {
  return `${rate >= 10 || rate === 0 ? Math.round(rate) : rate.toFixed(1)}/s`
}

function leaderWords({ leader, boundMs }: Recovery, nowMs: number, target: Target): string {
  if (!leader) return paint('red', 'nobody has led yet: start a worker or `holdfast reap`', target)
  const { holder, term, acquiredAt, sweptAt, sweepMs, isLive, renewedAt } = leader
  if (!isLive)
    return paint('red', `nobody; ${holder} (term ${term}) was last heard of ${ago(renewedAt, nowMs)}`, target)
  const swept = sweptAt ? `swept ${ago(sweptAt, nowMs)} in ${lengthWords(sweepMs ?? 0)}` : 'has not swept yet'
  return `${holder}, term ${term} for ${lengthWords(nowMs - acquiredAt.getTime())}, ${swept}; lost jobs move within ${lengthWords(boundMs)}`
}

function ago(at: Date, nowMs: number): string {
  const age = ageWords(at, nowMs)
  return age === 'now' ? 'just now' : `${age} ago`
}

/** What has lost its worker: found by the rules of the reaper, or held by a session that is silent. */
function orphanWords({ recovery, sessions }: Picture, target: Target): string {
  const silent = sessions.filter(({ isLive }) => !isLive).reduce((sum, { running }) => sum + running, 0)
  const count = recovery.orphans + silent
  if (count === 0) return 'none'
  return paint('yellow', `${count === 1 ? 'one attempt has' : `${count} attempts have`} lost the worker`, target)
}

function backlogWords({ pending, dead, isCapped }: Backlog, target: Target): string {
  const least = isCapped ? 'at least ' : ''
  return `${least}${pending} to be sent, ${dead > 0 ? paint('red', `${dead} dead`, target) : '0 dead'}`
}

const queueHeads = ['QUEUE', 'DUE', 'SCHEDULED', 'RUNNING', 'WAITING', 'OLDEST', 'WORKERS', 'STATE']

function queueRow(queue: Queue): Cell[] {
  const { name, isPaused, pausedBy, pauseReason, isCapped, queued, scheduled, running, waiting, oldestDueMs, workers } =
    queue
  const isStranded = workers === 0 && queued > 0
  const [state, look]: [string, Look] = isPaused
    ? [oneLine(`paused${pauseWords({ pausedBy, reason: pauseReason })}`), 'yellow']
    : isStranded
      ? ['no worker serves it', 'red']
      : ['', 'dim']
  return [
    { text: name },
    { text: isCapped ? `≥ ${queued}` : String(queued), ...(queued > 0 && { look: 'cyan' }) },
    { text: String(scheduled) },
    { text: String(running), ...(running > 0 && { look: 'blue' }) },
    { text: String(waiting) },
    { text: oldestDueMs === null ? '' : lengthWords(oldestDueMs) },
    { text: String(workers), ...(isStranded && { look: 'red' }) },
    { text: state, look },
  ]
}

const strandedHeads = ['KIND WITHOUT A WORKER', 'QUEUE', 'WAITING FOR']

function strandedRow({ kind, queue, waitingMs }: Stranded): Cell[] {
  return [{ text: kind, look: 'red' }, { text: queue }, { text: lengthWords(waitingMs) }]
}

const sessionHeads = ['SESSION', 'HOST', 'PID', 'RUNNING', 'AHEAD', 'HEARTBEAT', 'UP', 'STATE', 'QUEUES']

function sessionRow(session: Session, nowMs: number): Cell[] {
  const { id, host, pid, running, concurrency, heartbeatAt, startedAt, queues } = session
  return [
    { text: String(id) },
    { text: host },
    { text: String(pid) },
    // what it holds beyond what it can run at once, it has claimed ahead
    { text: `${Math.min(running, concurrency)}/${concurrency}` },
    { text: String(Math.max(0, running - concurrency)) },
    { text: ageWords(heartbeatAt, nowMs) },
    { text: ageWords(startedAt, nowMs) },
    sessionState(session),
    { text: [...new Set(queues)].join(', ') },
  ]
}

/** What a worker does, worst first: one that lives may still do nothing. */
function sessionState({ isLive, isLocked, isClaiming, unresponsive, blockedMs }: Session): Cell {
  if (!isLive) return { text: 'lease ran out', look: 'red' }
  const states = [
    blockedMs > 0 && `blocked for ${lengthWords(blockedMs)}`,
    !isClaiming && 'drains',
    unresponsive > 0 && `${unresponsive} ${unresponsive === 1 ? 'ignores its' : 'ignore their'} signal`,
    !isLocked && 'no lock',
  ].filter((one) => one !== false)
  const isTroubled = blockedMs > 0 || unresponsive > 0 || !isClaiming
  return { text: [isTroubled ? [] : 'lives', ...states].flat().join(', '), look: isTroubled ? 'yellow' : 'green' }
}

const groupHeads = ['GROUP', 'READERS', 'BEHIND', 'OLDEST', 'PARKED', 'TROUBLE']

function groupRow({ name, readers, behind, behindMs, parked, failing, heldBy }: Group): Cell[] {
  const troubles = [...failing.map(({ error }) => oneLine(error)), ...(heldBy ? [oneLine(holderWords(heldBy))] : [])]
  return [
    { text: name },
    readers === 0 ? { text: '0', look: 'red' } : { text: String(readers) },
    { text: String(behind) },
    { text: behind > 0 && behindMs > 0 ? lengthWords(behindMs) : '' },
    parked > 0 ? { text: String(parked), look: 'yellow' } : { text: '0' },
    { text: troubles.join('; '), look: failing.length > 0 ? 'red' : 'yellow' },
  ]
}

const revivalHeads = ['LOST AND FOUND', 'JOB', 'KIND', 'ATTEMPT', 'WHAT', 'WHY']

function revivalRow({ at, job, kind, attempt, type, data }: Revival): Cell[] {
  const { rung = '', lostMs } = (data ?? {}) as { rung?: string; lostMs?: number }
  return [
    { text: clockWords(at) },
    { text: shortId(job) },
    { text: kind },
    { text: String(attempt) },
    { text: type.replace('job.', ''), look: 'yellow' },
    { text: lostMs === undefined ? rung : `${rung}, lost for ${lengthWords(lostMs)}` },
  ]
}
