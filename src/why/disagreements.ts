import { endedItems } from '../job/fan-out.ts'
import { isFinal } from '../job/machine.ts'
import {
  ago,
  barrierOf,
  formatStage,
  formatUnresponsive,
  hasDrifted,
  isPast,
  type JobCase,
  ledgerTotal,
} from './case.ts'
import { type BarrierFacts, type Facts, isBehind } from './facts.ts'
import { lossOf } from './running.ts'

/** Where the sources contradict each other, each in a sentence. */
export function disagreementsOf({ facts, config }: Omit<JobCase, 'job'>): string[] {
  const { job } = facts
  const said = job ? ofJob({ facts, config, job }) : []
  return [...said, ...ofContinuation(facts)].filter((one) => one !== null)
}

function ofJob(c: JobCase): (string | null)[] {
  return [
    rowAndSession(c),
    rowAndLog(c),
    rowAndOutputs(c),
    rowAndKind(c),
    rowAndBarrier(c),
    ...c.facts.barriers.flatMap(barrierAndLedger),
    itemAndBarrier(c),
    leader(c),
    webhooks(c),
    rowAndHandler(c),
  ]
}

function rowAndSession(c: JobCase): string | null {
  const { job, facts } = c
  if (job.state !== 'running') return null
  const loss = lossOf(c)
  const row = `The row says running on session ${job.sessionId}`
  if (loss === 'session row gone') return `${row}; that session does not exist.`
  if (loss === 'ended')
    return `${row}; the session says it ended ${ago(c, facts.session?.endedAt)} (${facts.session?.endedBy}).`
  if (loss === 'lease ran out')
    return `${row}; the session's lease ran out ${ago(c, facts.session?.leaseUntil)}, but it has not been ended.`
  if (loss === 'lock gone') return `Session ${job.sessionId} says its lease is valid; the server says its lock is gone.`
  if (isPast(c, job.deadlineAt)) return `${row}, which is alive; its deadline passed ${ago(c, job.deadlineAt)}.`
  return null
}

/** A claim is not an event, so the last event of a running job says queued. */
function rowAndLog({ job, facts }: JobCase): string | null {
  const last = facts.events.findLast(({ state }) => state !== null)
  if (!last) return null
  const expected = job.state === 'running' ? 'queued' : job.state
  if (last.state === expected) return null
  return `The row says ${job.state}; the last event (${last.type}) says ${last.state}.`
}

function rowAndOutputs({ job, facts }: JobCase): string | null {
  if (isFinal(job.state)) return null
  const early = facts.outputs.find(({ stage }) => stage >= job.stage)
  return early
    ? `The row is at ${formatStage({ facts }, job.stage)}; an output of stage ${early.name} (${early.stage + 1}) is committed.`
    : null
}

function rowAndKind({ job, facts }: JobCase): string | null {
  if (!facts.kind || isFinal(job.state) || job.stage < facts.kind.stages) return null
  return `The row is at stage ${job.stage + 1}; the kind was last registered with ${facts.kind.stages}.`
}

function rowAndBarrier(c: JobCase): string | null {
  const barrier = barrierOf(c)
  if (c.job.state === 'waiting') {
    if (!barrier) return `The row says waiting; there is no barrier for ${formatStage(c, c.job.stage)}.`
    if (barrier.joinedAt) return `The row says waiting; its barrier says it joined ${ago(c, barrier.joinedAt)}.`
    return barrier.armedAt ? null : 'The row says waiting; its barrier was never armed.'
  }
  const open = c.facts.barriers.find(({ joinedAt, hasLive }) => joinedAt === null && hasLive)
  if (isFinal(c.job.state) && open)
    return `The row says ${c.job.state}; its barrier of ${formatStage(c, open.stage)} is open, with live items.`
  if (barrier?.armedAt && !barrier.joinedAt)
    return `The row says ${c.job.state}; its barrier is armed as if the job were waiting.`
  return null
}

function barrierAndLedger(barrier: BarrierFacts): string[] {
  const said: string[] = []
  const { ledger } = barrier
  const counted = ledgerTotal(barrier)
  if (hasDrifted(barrier) && ledger)
    said.push(`The barrier counts ${counts(barrier)}; its ledger has ${counts(ledger)}.`)
  if (counted !== null && barrier.total !== null && counted !== barrier.total)
    said.push(`The barrier was sealed with ${barrier.total} items; its ledger has ${counted}.`)
  // a redo of one item undoes its count, so a live item is never counted
  if (barrier.joinedAt && barrier.total !== null && endedItems(barrier) + (barrier.hasLive ? 1 : 0) > barrier.total)
    said.push(
      `The barrier says it has joined (${endedItems(barrier)} of ${barrier.total})${barrier.hasLive ? '; one of its items is live.' : ', more than its total.'}`,
    )
  if (barrier.armedAt && !barrier.joinedAt && !barrier.hasLive)
    said.push(`The barrier says it is open (${endedItems(barrier)} of ${barrier.total}); none of its items is live.`)
  return said
}

function counts({ succeeded, failed, cancelled }: { succeeded: number; failed: number; cancelled: number }): string {
  return `${succeeded} succeeded, ${failed} failed, ${cancelled} cancelled`
}

function itemAndBarrier({ job, facts: { itemOf } }: JobCase): string | null {
  if (!itemOf || isFinal(job.state)) return null
  if (!itemOf.isThere) return `The row says it is an item of barrier ${itemOf.barrierId}; that barrier does not exist.`
  if (itemOf.parentState === null || isFinal(itemOf.parentState))
    return `The row says ${job.state}; its parent is ${itemOf.parentState ?? 'gone'}.`
  return itemOf.stoppedAt ? `The row says ${job.state}; its fan-out was stopped.` : null
}

function rowAndHandler(c: JobCase): string | null {
  if ((c.facts.unresponsive?.length ?? 0) === 0) return null
  return `The row says ${c.job.state}, attempt ${c.job.attempt}; ${formatUnresponsive(c)}.`
}

function leader(c: JobCase): string | null {
  const { leader: row } = c.facts
  if (!row || isFinal(c.job.state) || !isPast(c, row.leaseUntil)) return null
  return `The leader row names a leader in term ${row.term}; its lease ran out ${ago(c, row.leaseUntil)}.`
}

function webhooks({ job, facts: { groups, deliveries } }: JobCase): string | null {
  if (deliveries?.oldestPending?.isOff) return 'A delivery says pending; its endpoint is disabled or deleted.'
  const late = groups.find(isBehind)
  if (!late || !isFinal(job.state)) return null
  const name = JSON.stringify(late.name)
  return late.seq === undefined
    ? `The log has events of this job; group ${name} has not read all of them.`
    : `The log has events of this job up to ${late.wantedSeq}; group ${name} has read up to ${late.seq}.`
}

function ofContinuation({ job, continues: barrier }: Facts): (string | null)[] {
  if (!barrier) return []
  if (job)
    return [barrier.firedAt ? null : `The job exists; barrier ${JSON.stringify(barrier.id)} says it has not fired.`]
  if (barrier.firedAt) return [`Barrier ${JSON.stringify(barrier.id)} says it has fired; its job does not exist.`]
  return [
    barrier.arrived === barrier.ledger
      ? null
      : `The barrier counts ${barrier.arrived} parts; its ledger has ${barrier.ledger}.`,
    barrier.ledger >= barrier.total
      ? `All ${barrier.total} parts have arrived; the barrier says it has not fired.`
      : null,
  ]
}
