import { stageWords } from '../why/case.ts'
import type { Facts, KindFacts } from '../why/facts.ts'
import { aheadCount, pauseWords } from '../why/queued.ts'
import { noteOf } from './job-words.ts'
import { type Cell, table } from './table.ts'
import { oneLine } from './terminal.ts'
import { lengthWords } from './time-words.ts'

type Line = readonly [source: string, says: string]

/** What every source says, as a table: one line for each thing that is known. */
export function sourceTable(facts: Facts): string[] {
  const lines = [
    ...rowLines(facts),
    ...sessionLines(facts),
    ...workerLines(facts),
    ...barrierLines(facts),
    ...logLines(facts),
    ...webhookLines(facts),
    ...leaderLines(facts),
  ]
  let last = ''
  const rows = lines.map(([source, says]): Cell[] => {
    // the name stands once, before the first of its lines
    const shown = source === last ? '' : source
    last = source
    return [{ text: shown, look: 'cyan' }, { text: says }]
  })
  return table(['SOURCE', 'SAYS'], rows)
}

function when({ at }: Facts, moment: string | null | undefined): string {
  if (!moment) return 'never'
  const ms = Date.parse(at) - Date.parse(moment)
  return ms >= 0 ? `${lengthWords(ms)} ago` : `in ${lengthWords(-ms)}`
}

function leaseWords({ at }: Facts, until: string | null): string {
  const ms = Date.parse(until ?? at) - Date.parse(at)
  return ms > 0 ? `lease is good for ${lengthWords(ms)}` : `lease ran out ${lengthWords(-ms)} ago`
}

function ofStages({ kind }: Facts): string {
  return kind ? ` of ${kind.stages}` : ''
}

function said(parts: readonly (string | false | null | undefined)[]): string {
  return parts.filter(Boolean).join(', ')
}

function rowLines(facts: Facts): Line[] {
  const { job, outputs, progress } = facts
  if (!job) return [['row', 'none: the job is not submitted yet']]
  const lines: Line[] = [
    [
      'row',
      said([
        job.state,
        stageWords({ facts }, job.stage),
        `attempt ${job.attempt}`,
        `submitted ${when(facts, job.submittedAt)}`,
      ]),
    ],
    ['row', said([`${job.failures} failed here`, `${job.crashes} of ${job.crashBudget} lost their worker`])],
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

function sessionLines(facts: Facts): Line[] {
  const { session, job } = facts
  if (!session) return job?.sessionId ? [['session', `${job.sessionId}: there is no such session`]] : []
  const where = session.host ? `, on ${session.host}, process ${session.pid}` : ''
  return [
    ['session', `${session.id}${where}, started ${when(facts, session.startedAt)}`],
    [
      'session',
      said([
        `heard of ${when(facts, session.heartbeatAt)}`,
        leaseWords(facts, session.leaseUntil),
        session.endedAt && `ended ${when(facts, session.endedAt)} (${said([session.endedBy, session.exit])})`,
        session.isLocked !== null && lockWords(session.isLocked, session.canTellLock),
      ]),
    ],
  ]
}

function lockWords(isLocked: boolean, canTell: boolean): string {
  if (isLocked) return 'its lock is held'
  return canTell ? 'its lock is gone' : 'no lock, which tells nothing here'
}

function ruleWords({ tenant, ownQueue }: KindFacts): string {
  if (tenant === undefined) return ''
  const other = ownQueue === undefined ? '' : `, before that of its tenant (queue ${ownQueue})`
  return tenant === null ? `, by the rule for all tenants${other}` : `, by the rule of tenant ${tenant}`
}

function workerLines(facts: Facts): Line[] {
  const { job, kind, queue, workers, ahead } = facts
  if (!job) return []
  const lines: Line[] = [
    [
      'kind',
      `${job.kind}, ${kind ? `${kind.stages === 1 ? 'one stage' : `${kind.stages} stages`}, registered ${when(facts, kind.seenAt)}${ruleWords(kind)}` : 'not registered'}`,
    ],
    [
      'queue',
      `${job.queue}, ${queue.pausedAt ? `paused ${when(facts, queue.pausedAt)}${pauseWords(queue)}` : 'open'}, priority ${job.priority}`,
    ],
  ]
  if (workers)
    lines.push([
      'workers',
      said([
        `${workers.living} live for this kind`,
        `${workers.concurrency} at a time`,
        workers.holding != null && `holding ${workers.holding}`,
        workers.claiming != null &&
          workers.claiming < workers.living &&
          `${workers.living - workers.claiming} draining`,
        (workers.unresponsive ?? 0) > 0 && `${workers.unresponsive} handlers ignore their signal`,
        (workers.blocked ?? 0) > 0 && `${workers.blocked} blocked`,
        `last seen ${when(facts, workers.lastSeenAt)}`,
        ahead != null && `${aheadCount(ahead)} due before it`,
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
        `${stageWords({ facts }, barrier.stage)} ${state}`,
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
    const place = `${stageWords({ facts }, event.stage)}, attempt ${event.attempt}, ${when(facts, event.at)}`
    return ['events', oneLine(`${event.type}, ${place}${note && `: ${note}`}`)]
  })
  const groups = facts.groups.map(
    (group): Line => [
      'groups',
      said([
        `${group.name} has read up to ${group.seq}`,
        group.wantedSeq !== null && `wants ${group.wantedSeq}`,
        group.hasReader ? `has a reader whose ${leaseWords(facts, group.readerUntil)}` : 'no reader',
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
  if (!leader) return [['leader', 'nobody has ever led']]
  return [
    [
      'leader',
      said([
        leader.holder ?? 'somebody',
        `term ${leader.term}`,
        leaseWords(facts, leader.leaseUntil),
        `swept ${when(facts, leader.sweptAt)}`,
      ]),
    ],
  ]
}
