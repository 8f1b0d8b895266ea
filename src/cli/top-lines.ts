import type { Group } from '../events/group.ts'
import type { Queue } from '../reads/queues.ts'
import type { OldSnapshot, Recovery, Revival, Stranded } from '../reads/recovery.ts'
import type { Session } from '../reads/sessions.ts'
import type { Backlog } from '../webhooks/deliveries.ts'
import { formatSnapshot } from '../why/old-snapshot.ts'
import { formatPause } from '../why/pause.ts'
import { formatHolder } from './format-event.ts'
import { formatAge, formatClock, formatDuration } from './format-time.ts'
import { shortId } from './pick-job.ts'
import { type Cell, table } from './table.ts'
import { type Look, oneLine, paint, type Target } from './terminal.ts'
import type { Picture, Rates } from './top-picture.ts'

/** A picture as lines: a summary, then tables. */
export function pictureLines(picture: Picture, target: Target = process.stdout): string[] {
  const { at, rates, queues, sessions, recovery, groups, deliveries } = picture
  const nowMs = at.getTime()
  const fact = (name: string, value: string) => `${paint('bold', name.padEnd(9), target)} ${value}`
  const part = (heads: string[], rows: Cell[][]) => (rows.length === 0 ? [] : ['', ...table(heads, rows, target)])
  return [
    fact('jobs', formatRate(rates)),
    fact('leader', formatLeader(recovery, nowMs, target)),
    fact('orphans', formatOrphan(picture, target)),
    fact('webhooks', formatBacklog(deliveries, target)),
    ...(recovery.oldestSnapshot ? [fact('cleaning', formatCleaning(recovery.oldestSnapshot, nowMs, target))] : []),
    ...(queues.length === 0 ? ['', 'No queues yet: no job was submitted and no worker has started.'] : []),
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

function formatRate(rates: Rates | null): string {
  if (rates === null) return 'rates appear in a moment'
  const { submitted, finished, failed } = rates
  return `${perSecond(submitted)} submitted, ${perSecond(finished)} finished, ${perSecond(failed)} failed`
}

function perSecond(rate: number): string {
  return `${rate >= 10 || rate === 0 ? Math.round(rate) : rate.toFixed(1)}/s`
}

function formatLeader({ leader, boundMs }: Recovery, nowMs: number, target: Target): string {
  if (!leader) return paint('red', 'no leader yet: start a worker or `holdfast reap`', target)
  const { holder, term, acquiredAt, sweptAt, sweepMs, isLive, renewedAt } = leader
  if (!isLive) return paint('red', `none; last was ${holder} (term ${term}), seen ${ago(renewedAt, nowMs)}`, target)
  const swept = sweptAt ? `swept ${ago(sweptAt, nowMs)} in ${formatDuration(sweepMs ?? 0)}` : 'has not swept yet'
  return `${holder}, term ${term} for ${formatDuration(nowMs - acquiredAt.getTime())}, ${swept}; lost jobs recover within ${formatDuration(boundMs)}`
}

function ago(at: Date, nowMs: number): string {
  const age = formatAge(at, nowMs)
  return age === 'now' ? 'just now' : `${age} ago`
}

/** Jobs that have lost their worker: found by the rules of the reaper, or held by a silent session. */
function formatOrphan({ recovery, sessions }: Picture, target: Target): string {
  const silent = sessions.filter(({ isLive }) => !isLive).reduce((sum, { running }) => sum + running, 0)
  const count = recovery.orphans + silent
  if (count === 0) return 'none'
  return paint(
    'yellow',
    `${count === 1 ? 'one attempt has lost its worker' : `${count} attempts have lost their workers`}`,
    target,
  )
}

function formatBacklog({ pending, dead, isCapped }: Backlog, target: Target): string {
  const least = isCapped ? 'at least ' : ''
  return `${least}${pending} pending, ${dead > 0 ? paint('red', `${dead} dead`, target) : '0 dead'}`
}

function formatCleaning(snapshot: OldSnapshot, nowMs: number, target: Target): string {
  const since = snapshot.since?.toISOString() ?? null
  return paint('yellow', oneLine(`held back by ${formatSnapshot({ ...snapshot, since }, nowMs)}`), target)
}

const queueHeads = ['QUEUE', 'DUE', 'SCHEDULED', 'RUNNING', 'WAITING', 'OLDEST', 'WORKERS', 'STATE']

function queueRow(queue: Queue): Cell[] {
  const { name, isPaused, pausedBy, pauseReason, isCapped, queued, scheduled, running, waiting, oldestDueMs, workers } =
    queue
  const isStranded = workers === 0 && queued > 0
  const [state, look]: [string, Look] = isPaused
    ? [oneLine(`paused${formatPause({ pausedBy, reason: pauseReason })}`), 'yellow']
    : isStranded
      ? ['no workers', 'red']
      : ['', 'dim']
  return [
    { text: name },
    { text: isCapped ? `≥ ${queued}` : String(queued), ...(queued > 0 && { look: 'cyan' }) },
    { text: String(scheduled) },
    { text: String(running), ...(running > 0 && { look: 'blue' }) },
    { text: String(waiting) },
    { text: oldestDueMs === null ? '' : formatDuration(oldestDueMs) },
    { text: String(workers), ...(isStranded && { look: 'red' }) },
    { text: state, look },
  ]
}

const strandedHeads = ['KIND WITHOUT A WORKER', 'QUEUE', 'WAITING FOR']

function strandedRow({ kind, queue, waitingMs }: Stranded): Cell[] {
  return [{ text: kind, look: 'red' }, { text: queue }, { text: formatDuration(waitingMs) }]
}

const sessionHeads = ['SESSION', 'HOST', 'PID', 'RUNNING', 'AHEAD', 'HEARTBEAT', 'UP', 'STATE', 'QUEUES']

function sessionRow(session: Session, nowMs: number): Cell[] {
  const { id, host, pid, running, concurrency, heartbeatAt, startedAt, queues } = session
  return [
    { text: String(id) },
    { text: host },
    { text: String(pid) },
    // jobs beyond its concurrency were prefetched
    { text: `${Math.min(running, concurrency)}/${concurrency}` },
    { text: String(Math.max(0, running - concurrency)) },
    { text: formatAge(heartbeatAt, nowMs) },
    { text: formatAge(startedAt, nowMs) },
    sessionState(session),
    { text: [...new Set(queues)].join(', ') },
  ]
}

/** The state of a worker, the worst condition first: a live one may still do nothing. */
function sessionState({ isLive, isLocked, isClaiming, unresponsive, blockedMs }: Session): Cell {
  if (!isLive) return { text: 'lease ran out', look: 'red' }
  const states = [
    blockedMs > 0 && `blocked for ${formatDuration(blockedMs)}`,
    !isClaiming && 'draining',
    unresponsive > 0 && `${unresponsive} ${unresponsive === 1 ? 'ignores its' : 'ignore their'} abort signal`,
    !isLocked && 'no lock',
  ].filter((one) => one !== false)
  const isTroubled = blockedMs > 0 || unresponsive > 0 || !isClaiming
  return { text: [isTroubled ? [] : 'live', ...states].flat().join(', '), look: isTroubled ? 'yellow' : 'green' }
}

const groupHeads = ['GROUP', 'READERS', 'BEHIND', 'OLDEST', 'PARKED', 'TROUBLE']

function groupRow({ name, readers, behind, behindMs, parked, failing, heldBy }: Group): Cell[] {
  const problems = [...failing.map(({ error }) => oneLine(error)), ...(heldBy ? [oneLine(formatHolder(heldBy))] : [])]
  return [
    { text: name },
    readers === 0 ? { text: '0', look: 'red' } : { text: String(readers) },
    { text: String(behind) },
    { text: behind > 0 && behindMs > 0 ? formatDuration(behindMs) : '' },
    parked > 0 ? { text: String(parked), look: 'yellow' } : { text: '0' },
    { text: problems.join('; '), look: failing.length > 0 ? 'red' : 'yellow' },
  ]
}

const revivalHeads = ['RECOVERED AT', 'JOB', 'KIND', 'ATTEMPT', 'WHAT', 'WHY']

function revivalRow({ at, job, kind, attempt, type, data }: Revival): Cell[] {
  const { rung = '', lostMs } = (data ?? {}) as { rung?: string; lostMs?: number }
  return [
    { text: formatClock(at) },
    { text: shortId(job) },
    { text: kind },
    { text: String(attempt) },
    { text: type.replace('job.', ''), look: 'yellow' },
    { text: lostMs === undefined ? rung : `${rung}, lost for ${formatDuration(lostMs)}` },
  ]
}
