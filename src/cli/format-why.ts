import { aheadCount } from '../why/ahead.ts'
import { formatStage } from '../why/case.ts'
import type { Facts, KindFacts } from '../why/facts.ts'
import { formatPause } from '../why/pause.ts'
import { noteOf } from './format-job.ts'
import { formatDuration } from './format-time.ts'
import { type Cell, table } from './table.ts'
import { oneLine } from './terminal.ts'

type Line = readonly [source: string, says: string]

/** What every source says, as a table: one line for each known fact. */
export function sourceTable(facts: Facts): string[] {
  const lines = [
    ...rowLines(facts),
    ...scheduleLines(facts),
    ...sessionLines(facts),
    ...workerLines(facts),
    ...barrierLines(facts),
    ...logLines(facts),
    ...webhookLines(facts),
    ...leaderLines(facts),
  ]
  let last = ''
  const rows = lines.map(([source, says]): Cell[] => {
    // the source is named once, before the first of its lines
    const shown = source === last ? '' : source
    last = source
    return [{ text: shown, look: 'cyan' }, { text: says }]
  })
  return table(['SOURCE', 'SAYS'], rows)
}

function when({ at }: Facts, moment: string | null | undefined): string {
  if (!moment) return 'never'
  const ms = Date.parse(at) - Date.parse(moment)
  return ms >= 0 ? `${formatDuration(ms)} ago` : `in ${formatDuration(-ms)}`
}

function formatLease({ at }: Facts, until: string | null): string {
  const ms = Date.parse(until ?? at) - Date.parse(at)
  return ms > 0 ? `lease valid for ${formatDuration(ms)}` : `lease ran out ${formatDuration(-ms)} ago`
}

function ofStages({ kind }: Facts): string {
  return kind ? ` of ${kind.stages}` : ''
}

function said(parts: readonly (string | false | null | undefined)[]): string {
  return parts.filter(Boolean).join(', ')
}

function rowLines(facts: Facts): Line[] {
  const { job, outputs, progress } = facts
  if (!job) return [['row', 'none: the job has not been submitted yet']]
  const lines: Line[] = [
    [
      'row',
      said([
        job.state,
        formatStage({ facts }, job.stage),
        `attempt ${job.attempt}`,
        `submitted ${when(facts, job.submittedAt)}`,
      ]),
    ],
    ['row', said([`${job.failures} failed in this stage`, `${job.crashes} of ${job.crashBudget} lost their worker`])],
    [
      'row',
      said([
        job.runAt && `due ${when(facts, job.runAt)}`,
        job.deadlineAt && `deadline ${when(facts, job.deadlineAt)}`,
        job.finishedAt && `ended ${when(facts, job.finishedAt)}`,
      ]),
    ],
  ]
  if (job.error) lines.push(['row', `${job.error.code}: ${job.error.message}`])
  for (const { stage, name, attempt, at } of outputs)
    lines.push(['outputs', `${name} (${stage + 1}${ofStages(facts)}) by attempt ${attempt}, ${when(facts, at)}`])
  if (progress)
    lines.push([
      'progress',
      `${progress.done}${progress.total === null ? '' : `/${progress.total}`} by attempt ${progress.attempt}, ${when(facts, progress.at)}`,
    ])
  return lines
}

function scheduleLines({ scheduled }: Facts): Line[] {
  if (!scheduled) return []
  const { schedule, what, slotAt, by } = scheduled
  const slot = what === 'triggered' ? `triggered at ${slotAt}` : `${what} for its slot of ${slotAt}`
  return [['schedule', `${schedule}: ${slot}${by ? ` by ${by}` : ''}`]]
}

function sessionLines(facts: Facts): Line[] {
  const { session, job } = facts
  if (!session) return job?.sessionId ? [['session', `${job.sessionId}: not found`]] : []
  const where = session.host ? `, on ${session.host}, process ${session.pid}` : ''
  return [
    ['session', `${session.id}${where}, started ${when(facts, session.startedAt)}`],
    [
      'session',
      said([
        `last heartbeat ${when(facts, session.heartbeatAt)}`,
        formatLease(facts, session.leaseUntil),
        session.endedAt && `ended ${when(facts, session.endedAt)} (${said([session.endedBy, session.exit])})`,
        session.isLocked !== null && formatLock(session.isLocked, session.canTellLock),
      ]),
    ],
  ]
}

function formatLock(isLocked: boolean, canTell: boolean): string {
  if (isLocked) return 'holds its lock'
  return canTell ? 'lost its lock' : 'no lock (not conclusive here)'
}

function formatRule({ tenant, ownQueue }: KindFacts): string {
  if (tenant === undefined) return ''
  const other = ownQueue === undefined ? '' : `, which overrides its tenant’s (queue ${ownQueue})`
  return tenant === null ? `, by the rule for all tenants${other}` : `, by the rule for tenant ${tenant}`
}

function workerLines(facts: Facts): Line[] {
  const { job, kind, queue, workers, ahead } = facts
  if (!job) return []
  const lines: Line[] = [
    [
      'kind',
      `${job.kind}, ${kind ? `${kind.stages === 1 ? 'one stage' : `${kind.stages} stages`}, registered ${when(facts, kind.seenAt)}${formatRule(kind)}` : 'not registered'}`,
    ],
    [
      'queue',
      `${job.queue}, ${queue.pausedAt ? `paused ${when(facts, queue.pausedAt)}${formatPause(queue)}` : 'open'}, priority ${job.priority}`,
    ],
  ]
  if (workers)
    lines.push([
      'workers',
      said([
        `${workers.living} running for this kind`,
        `${workers.concurrency} at a time`,
        workers.holding != null && `holding ${workers.holding}`,
        workers.claiming != null &&
          workers.claiming < workers.living &&
          `${workers.living - workers.claiming} draining`,
        (workers.unresponsive ?? 0) > 0 && `${workers.unresponsive} handlers ignore their abort signal`,
        (workers.blocked ?? 0) > 0 && `${workers.blocked} blocked`,
        `last seen ${when(facts, workers.lastSeenAt)}`,
        ahead != null && `${aheadCount(ahead)} ahead of it`,
      ]),
    ])
  return lines
}

function barrierLines(facts: Facts): Line[] {
  const { barriers, itemOf, continues } = facts
  const lines: Line[] = []
  for (const barrier of barriers) {
    const state = barrier.joinedAt ? `joined ${when(facts, barrier.joinedAt)}` : barrier.armedAt ? 'open' : 'not armed'
    lines.push([
      'barrier',
      said([
        `${formatStage({ facts }, barrier.stage)} ${state}`,
        `${barrier.total ?? '?'} items`,
        `${barrier.succeeded} succeeded`,
        `${barrier.failed} failed`,
        `${barrier.cancelled} cancelled`,
        barrier.stoppedAt && `stopped ${when(facts, barrier.stoppedAt)}`,
        barrier.expiresAt && `expires ${when(facts, barrier.expiresAt)}`,
      ]),
    ])
    const { ledger, stragglers } = barrier
    if (ledger) {
      const counts = Object.entries(ledger).filter(([, count]) => typeof count === 'number')
      lines.push([
        'ledger',
        `${counts.map(([name, count]) => `${count} ${name}`).join(', ')}${ledger.isWhole ? '' : ', and more'}`,
      ])
    }
    for (const one of stragglers ?? [])
      lines.push([
        'items',
        said([
          `${one.key ?? one.id} ${one.state}`,
          `attempt ${one.attempt}`,
          one.deadlineAt && `deadline ${when(facts, one.deadlineAt)}`,
        ]),
      ])
  }
  if (itemOf)
    lines.push([
      'item of',
      itemOf.isThere
        ? `job ${itemOf.jobId}, which is ${itemOf.parentState ?? 'gone'}`
        : `barrier ${itemOf.barrierId}, which is gone`,
    ])
  if (continues)
    lines.push([
      'continues',
      said([
        `barrier ${JSON.stringify(continues.id)}`,
        `counts ${continues.arrived} of ${continues.total}`,
        `ledger ${continues.ledger}`,
        continues.expiresAt && `expires ${when(facts, continues.expiresAt)}`,
        continues.firedAt && `fired ${when(facts, continues.firedAt)}`,
        continues.owner && `owner ${continues.owner}, asked ${continues.asks} times`,
      ]),
    ])
  return lines
}

function logLines(facts: Facts): Line[] {
  const events = facts.events.map((event): Line => {
    const note = noteOf({ ...event, at: new Date(event.at) })
    const place = `${formatStage({ facts }, event.stage)}, attempt ${event.attempt}, ${when(facts, event.at)}`
    return ['events', oneLine(`${event.type}, ${place}${note && `: ${note}`}`)]
  })
  const groups = facts.groups.map(
    (group): Line => [
      'groups',
      said([
        `${group.name} has read up to ${group.seq}`,
        group.wantedSeq !== null && `wants ${group.wantedSeq}`,
        group.hasReader ? `has a reader (${formatLease(facts, group.readerUntil)})` : 'no reader',
        group.isParked && 'an event of this job is parked',
      ]),
    ],
  )
  const refused = facts.refusals.map(
    ({ at, attempt, sessionId, write }): Line => [
      'refused',
      `${write} of attempt ${attempt} by session ${sessionId}, ${when(facts, at)}`,
    ],
  )
  return [...events, ...groups, ...refused]
}

function webhookLines({ deliveries }: Facts): Line[] {
  if (!deliveries || deliveries.pending + deliveries.delivered + deliveries.dead === 0) return []
  return [['webhooks', `${deliveries.pending} pending, ${deliveries.delivered} delivered, ${deliveries.dead} dead`]]
}

function leaderLines(facts: Facts): Line[] {
  const { leader } = facts
  if (!leader) return [['leader', 'none has ever been elected']]
  return [
    [
      'leader',
      said([
        leader.holder ?? 'unknown',
        `term ${leader.term}`,
        formatLease(facts, leader.leaseUntil),
        `swept ${when(facts, leader.sweptAt)}`,
      ]),
    ],
  ]
}
