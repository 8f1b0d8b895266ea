import { removeExpired } from '#holdfast/barrier/heal.sql'
import { openGroup } from '#holdfast/events/group.sql'
import { acquireLead } from '#holdfast/leader/leader.sql'
import type { OrphanName } from '#holdfast/reaper/orphans'
import { parkJobs } from '#holdfast/settle/park.sql'
import { failJobs, retryJobs } from '#holdfast/settle/settle.sql'
import { awaitSignals, snoozeJobs } from '#holdfast/settle/snooze.sql'
import { cancelJobs } from '#holdfast/submit/submit.sql'
import type { RepairName } from '#holdfast/why/repair'
import { heldFenceOf } from '#holdfast/worker/attempt'
import type { ClaimedRow } from '#holdfast/worker/claim-batch'
import { beat, openSession } from '#holdfast/worker/session.sql'
import { postponeJobs } from '#holdfast/worker/unclaimable.sql'
import { freshVitals, type Vitals } from '#holdfast/worker/vitals'
import { awaitSignal } from '#holdfast/worker/wait.sql'
import { claimItems, type FanOut, fail, finish, producing, waiting } from '../barrier/given.ts'
import type { Fixtures } from '../fixtures.ts'
import type { Running } from '../given.ts'
import { drain, expire, plain } from '../owned.ts'
import { setCrashes, takeOut, makeWait as waitByHand } from '../places.ts'
import { gateOrphansMade, limitsMade } from './limits-made.ts'

/** What a situation is made of. */
export type On = Pick<Fixtures, 'given' | 'store' | 'query' | 'hf' | 'pool'> & {
  /** Runs when the test has looked. */
  later: (undo: () => Promise<unknown>) => void
}

/** A situation, and what is to be said about it. */
export interface Made {
  make: (on: On) => Promise<string>
  code: string
  says: RegExp
  /** A disagreement that must be told. */
  but?: RegExp
  next?: RegExp | null
  repair?: RepairName
  /** The verdict after the repair; without it, it is another one than before. */
  after?: string
  /** The class that it is taken for, where two look the same from outside. */
  looksLike?: OrphanName
}

const anError = JSON.stringify({ code: 'handler_failed', message: 'It broke.' })

/** Forgets all that was made, so that one database serves many situations. */
export async function clear(query: On['query']): Promise<void> {
  await query(`do $$ declare name text; begin
    foreach name in array array['job', 'ready', 'lease', 'waiting', 'outcome', 'barrier', 'owned_barrier', 'session', 'queue', 'delivery', 'endpoint', 'event_log',
      'event_group', 'event_reader', 'leader', 'snapshot', 'refusal', 'kind', 'limiter', 'key_limit', 'gate', 'gate_hint', 'stage_output', 'parked_outcome', 'schedule', 'schedule_slot'] loop
      execute format('delete from holdfast.%I', name);
    end loop;
  end $$`)
}

/** Somebody leads for the next minute. */
export function lead({ store }: Pick<On, 'store'>) {
  return store.run(acquireLead, { vacantMs: 60_000, holder: 'host-a:4711', leaseMs: 60_000 })
}

/** A heartbeat of a session, with how its process is. */
async function beating({ store }: On, id: number, vitals: Partial<Vitals>): Promise<void> {
  await store.run(beat, { id, isLocked: false, leaseMs: 60_000, vitals: { ...freshVitals, ...vitals } })
}

/** A live worker that serves a queue. */
export async function serving({ store }: Pick<On, 'store'>, queue: string, how: { concurrency?: number } = {}) {
  const facts = { pid: 1, host: 'host-b', supervisor: null, version: '0', leaseMs: 60_000, lostAfterMs: 30_000 }
  const [opened] = await store.run(openSession, {
    ...facts,
    kinds: ['sample'],
    queues: [queue],
    concurrency: how.concurrency ?? 10,
  })
  return (opened as { id: number }).id
}

/** Lets a job have been due for a minute, with a worker that could claim it. */
async function overdue(on: On, { id, queue }: { id: string; queue: string }): Promise<string> {
  await serving(on, queue)
  await on.query(`update holdfast.ready set run_at = now() - interval '1 min' where job_id = $1`, [id])
  return id
}

async function ended(on: On, { id, sessionId }: Running, by = 'lock gone'): Promise<string> {
  await on.query('update holdfast.session set ended_at = now(), ended_by = $2 where id = $1', [sessionId, by])
  return id
}

async function atSecondStage(on: On): Promise<Running> {
  const { queue } = await on.given.atSecondStage()
  const sessionId = await on.given.session()
  const [row] = await on.given.claim({ sessionId, queue })
  return { ...heldFenceOf(row as ClaimedRow), queue }
}

/** Lets a job wait that was joined, as if the join had never reached it. */
function makeWait({ query }: On, parent: string): Promise<void> {
  return waitByHand(query, parent)
}

async function drained(on: On): Promise<FanOut> {
  const made = await waiting(on, { items: 2 })
  await finish(on.store, await claimItems(on, made))
  await on.query('update holdfast.barrier set joined_at = null')
  await makeWait(on, made.parent.id)
  return made
}

/** A group that has read nothing yet, with a reader whose lease ends so many seconds from now. */
async function group(on: On, name: string, reader: number | null): Promise<void> {
  await on.store.run(openGroup, { group: name, types: null, items: true, partitions: 1, seq: 0 })
  if (reader === null) return
  await on.query(
    `with reader as (
      insert into holdfast.event_reader (id, group_name, host, pid, lease_until)
      values (gen_random_uuid(), $1, 'host-c', 1, now() + $2::float8 * interval '1 s') returning id
    )
    update holdfast.event_cursor set reader_id = (select id from reader) where group_name = $1`,
    [name, reader],
  )
}

/** A delivery of a job that ended well. */
async function delivery(on: On, columns: Record<string, string>): Promise<string> {
  const { id } = await on.given.finished()
  const all = { event_seq: '1', state: `'pending'`, ...columns }
  await on.query(
    `insert into holdfast.delivery (event_id, type, tenant, job_id, lane, body, ${Object.keys(all).join(', ')})
    values ('evt_1', 'job.finished', 'default', $1, 'lane', '{}', ${Object.values(all).join(', ')})`,
    [id],
  )
  return id
}

/** The continuation of a barrier of its own that waits for two parts. */
async function continuation({ hf }: On, how: object = {}): Promise<string> {
  return (await hf.barrier.open({ id: 'b', ...plain, ...how })).job
}

const owned = { tenant: 'acme', expires: 60_000, owner: { name: 'flows', execution: 'e-1' } }

async function overdueOwned(on: On, asks = 0): Promise<string> {
  const id = await continuation(on, owned)
  await expire(on.query, 'b')
  await on.query('update holdfast.owned_barrier set asks = $1', [asks])
  return id
}

/** Every class of orphan, made. */
export const orphansMade: Record<OrphanName, Made> = {
  'submitted-unannounced': {
    make: async (on) => overdue(on, await on.given.queued()),
    code: 'overdue',
    says: /^waiting: it has been due for 6\d s, with 1 live worker that could claim it\.$/,
    next: /A worker claims it with its next poll/,
    repair: 'wake',
    after: 'overdue',
  },
  'retry-timer-died': {
    async make(on) {
      const running = await on.given.running()
      await on.store.run(retryJobs, { fences: [running], errors: [anError], delaysMs: [0] })
      return overdue(on, running)
    },
    code: 'overdue',
    says: /due for 6\d s/,
    repair: 'wake',
    after: 'overdue',
  },
  'snooze-timer-died': {
    async make(on) {
      const running = await on.given.running()
      await on.store.run(snoozeJobs, { fences: [running], delaysMs: [0] })
      return overdue(on, running)
    },
    code: 'overdue',
    says: /due for 6\d s/,
    repair: 'wake',
    after: 'overdue',
  },
  'signal-unannounced': {
    async make(on) {
      const queued = await on.given.queued()
      await on.query(
        `insert into holdfast.signal_wait (job_id, stage, name, until) values ($1, 0, 'go', now() + interval '1 h')`,
        [queued.id],
      )
      await on.hf.signal(queued.id, 'go')
      return overdue(on, queued)
    },
    code: 'overdue',
    says: /due for 6\d s/,
    repair: 'wake',
    after: 'overdue',
  },
  'next-stage-not-started': {
    make: async (on) => overdue(on, await on.given.atSecondStage()),
    code: 'overdue',
    says: /due for 6\d s/,
    repair: 'wake',
    after: 'overdue',
  },
  'running-dead-session': {
    make: async (on) => (await on.given.attemptOfDeadSession()).id,
    code: 'lease-out',
    says: /^lost: the lease of session \d+ ran out .* ago; its last heartbeat was .* ago\.$/,
    but: /The row says running on session \d+; the session's lease ran out .*, but it has not been ended\./,
    next: /returns to its queue/,
    repair: 'revive',
    after: 'no-worker',
  },
  'later-stage-dead-session': {
    make: async (on) => ended(on, await atSecondStage(on)),
    code: 'session-ended',
    says: /^lost: session \d+, which holds it, ended .* ago \(lock gone\)\.$/,
    but: /the session says it ended/,
    next: /returns to its queue/,
    repair: 'revive',
    after: 'no-worker',
  },
  'session-row-gone': {
    async make(on) {
      const { id } = await on.given.running()
      await on.query('delete from holdfast.session')
      return id
    },
    code: 'session-gone',
    says: /^lost: session \d+, which holds it, does not exist\.$/,
    but: /that session does not exist/,
    repair: 'revive',
    after: 'no-worker',
  },
  'claimed-by-ended-session': {
    make: async (on) => ended(on, await on.given.running(), 'itself'),
    code: 'session-ended',
    says: /ended .* ago \(itself\)/,
    repair: 'revive',
    after: 'no-worker',
  },
  'hung-handler': {
    make: hung,
    code: 'deadline-passed',
    says: /^hung: its deadline passed [\d.]+ s ago, but session \d+ is alive/,
    but: /which is alive; its deadline passed/,
    next: /late writes of its handler are refused/,
    repair: 'revive',
    after: 'no-worker',
  },
  'finish-failed-worker-lives': {
    make: hung,
    code: 'deadline-passed',
    says: /its outcome cannot be written/,
    repair: 'revive',
    after: 'no-worker',
    looksLike: 'hung-handler',
  },
  'outcome-refused': {
    async make({ given, store }) {
      const running = await given.running()
      const errors = ['{"code":"output_invalid","message":"Postgres refuses every outcome of this job: planted"}']
      const outcomes = ['{"move":"finish","stageName":"one","output":null}']
      await store.run(parkJobs, { fences: [running], errors, outcomes })
      return running.id
    },
    code: 'outcome-refused',
    says: /^parked: attempt 1 has ended, but the database rejects its outcome \(.*planted\)/,
    next: /does not run again/,
    repair: 'settle-parked',
  },
  unclaimable: {
    async make(on) {
      const { id, queue } = await on.given.queued()
      await serving(on, queue)
      await on.store.run(postponeJobs, { ids: [id], errors: ['planted'], delayMs: 60_000 })
      return id
    },
    code: 'unclaimable',
    says: /^postponed: it can't be claimed \(planted\); it is tried again in \d+ s\.$/,
    next: /becomes due, and a worker claims it/,
  },
  'cancelled-still-executing': {
    async make(on) {
      const { id } = await on.given.running()
      await on.store.run(cancelJobs, { ids: [id], tenant: null, reason: 'no longer needed' })
      return id
    },
    code: 'still-executing',
    says: /^cancelled .* ago: no longer needed; its handler may still be running on session \d+/,
    next: /abort signal fires/,
  },
  'handler-ignores-signal': {
    async make(on) {
      const { id, attempt, sessionId } = await on.given.running()
      await on.store.run(cancelJobs, { ids: [id], tenant: null, reason: 'no longer needed' })
      const handler = {
        id,
        attempt,
        kind: 'sample',
        stage: 'run',
        reason: 'cancelled',
        since: new Date().toISOString(),
      }
      const vitals = { ...freshVitals, unresponsive: 1 }
      await on.store.run(beat, { id: sessionId, isLocked: false, leaseMs: 60_000, vitals, unresponsive: [handler] })
      return id
    },
    code: 'handler-unresponsive',
    says: /^cancelled .* ago: no longer needed; the handler of attempt 1 was aborted \(cancelled\) .* ago and is still running on session \d+/,
    but: /The row says cancelled, attempt 1; the handler of attempt 1 was aborted/,
    next: /return value is discarded/,
  },
  'fan-out-unsealed': {
    make: async (on) => ended(on, (await producing(on)).parent),
    code: 'session-ended',
    says: /ended/,
    repair: 'revive',
    after: 'no-worker',
  },
  'drained-not-joined': {
    make: async (on) => (await drained(on)).parent.id,
    code: 'drained',
    says: /^stuck: all 2 items have ended, but the join never fired\.$/,
    but: /The barrier says it is open \(2 of 2\); none of its items is live\./,
    next: /The join fires/,
    repair: 'join',
  },
  'items-lost': {
    async make(on) {
      const made = await waiting(on, { items: 3, tolerate: { count: 2 } })
      const items = await claimItems(on, made)
      const lost = items.slice(0, 2).map(({ id }) => id)
      await takeOut(on.query, lost)
      await on.query('delete from holdfast.job where id = any($1)', [lost])
      await finish(on.store, items.slice(2))
      return made.parent.id
    },
    code: 'items-lost',
    says: /^waiting: 2 items of 3 are missing from the ledger, and none is left to wait for\.$/,
    but: /sealed with 3 items; its ledger has 1\./,
    next: /count as failed/,
    repair: 'join',
  },
  'negative-count': {
    async make(on) {
      const made = await waiting(on, { items: 3 })
      await on.query('update holdfast.barrier set succeeded = -2')
      return made.parent.id
    },
    code: 'count-negative',
    says: /negative \(-2 of 3 have ended, 3 queued\)/,
    but: /The barrier counts -2 succeeded, 0 failed, 0 cancelled; its ledger has 0 succeeded/,
    repair: 'recount',
    after: 'waiting',
  },
  'counter-drift': {
    async make(on) {
      const made = await waiting(on, { items: 3, tolerate: { count: 3 } })
      await fail(on.store, (await claimItems(on, made)).slice(0, 1))
      await on.query('update holdfast.barrier set succeeded = 2, failed = 0')
      return made.parent.id
    },
    code: 'counters-drifted',
    says: /^waiting: the counters of its barrier disagree with its items/,
    but: /The barrier counts 2 succeeded, 0 failed, 0 cancelled; its ledger has 0 succeeded, 1 failed, 0 cancelled\./,
    next: /recounted/,
    repair: 'recount',
    after: 'waiting',
  },
  'barrier-expired': {
    async make(on) {
      const made = await waiting(on, { items: 3, expiresMs: 60_000 })
      await on.query(`update holdfast.barrier set expires_at = now() - interval '2 s'`)
      return made.parent.id
    },
    code: 'fan-out-expired',
    says: /^waiting: its fan-out expired [\d.]+ s ago with unfinished items \(0 of 3 have ended, 3 queued\)\.$/,
    next: /cancelled, and the join fires/,
    repair: 'expire',
  },
  'stop-unfinished': {
    async make(on) {
      const made = await waiting(on, { items: 3 })
      await on.query('update holdfast.barrier set stopped_at = now()')
      return made.parent.id
    },
    code: 'stop-unfinished',
    says: /^waiting: its fan-out was stopped .* ago, but some of its items are not cancelled yet/,
    next: /The remaining items are cancelled/,
    repair: 'stop-items',
  },
  'fan-out-abandoned': {
    async make(on) {
      const { parent } = await producing(on)
      await on.store.run(failJobs, { fences: [parent], errors: [anError] })
      return parent.id
    },
    code: 'fan-out-abandoned',
    says: /^failed .* ago: It broke; but items of its fan-out are still live\.$/,
    but: /The row says failed; its barrier of stage 1 is open, with live items\./,
    next: /cancelled/,
    repair: 'stop-items',
    after: 'failed',
  },
  'item-without-barrier': {
    async make(on) {
      const made = await waiting(on)
      await on.query('delete from holdfast.barrier')
      return made.items[0] as string
    },
    code: 'item-without-barrier',
    says: /^queued, but no job waits for it: the barrier of its fan-out no longer exists\.$/,
    but: /that barrier does not exist/,
    repair: 'stop-items',
    after: 'cancelled',
  },
  'waiting-without-barrier': {
    async make(on) {
      const made = await waiting(on)
      await on.query('delete from holdfast.barrier')
      return made.parent.id
    },
    code: 'no-barrier',
    says: /^stuck: it waits, but the barrier of its stage does not exist\.$/,
    but: /The row says waiting; there is no barrier for stage 1\./,
    next: /returns to its queue/,
    repair: 'requeue',
  },
  'group-reader-died': {
    async make(on) {
      const { id } = await on.given.finished()
      await group(on, 'mail', -5)
      return id
    },
    code: 'group-unread',
    says: /^succeeded .*; but group `mail` has not read its events: the lease of its reader ran out [\d.]+ s ago\.$/,
    but: /group "mail" has read up to 0\./,
    next: /next reader of the group/,
  },
  'event-kills-readers': {
    async make(on) {
      const { id } = await on.given.finished()
      await group(on, 'mail', -5)
      await on.query('update holdfast.event_cursor set crashes = 3')
      return id
    },
    code: 'event-kills-readers',
    says: /group `mail` has not read its events: 3 readers died there/,
    next: /parked after the fifth/,
  },
  'event-committed-late': {
    async make(on) {
      const late = await on.pool.connect()
      await late.query('begin')
      await late.query('select pg_current_xact_id()')
      on.later(async () => {
        await late.query('rollback')
        late.release()
      })
      const { id } = await on.given.finished()
      await group(on, 'mail', 60)
      return id
    },
    code: 'event-held-back',
    says: /group `mail` has not read its events because a transaction that began .* ago may still write earlier ones\.$/,
    next: /once that transaction has ended/,
  },
  'owned-drained-not-fired': {
    async make(on) {
      const id = await continuation(on)
      await drain(on.query, 'b', 2)
      return id
    },
    code: 'barrier-drained',
    says: /^stuck: all 2 parts of barrier "b" have arrived, but it never fired\.$/,
    but: /All 2 parts have arrived; the barrier says it has not fired\./,
    repair: 'compare',
    after: 'no-worker',
  },
  'owned-negative-count': {
    async make(on) {
      const id = await continuation(on)
      await on.query('update holdfast.owned_barrier set arrived = -1')
      return id
    },
    code: 'barrier-count-negative',
    says: /counts -1 arrived parts, which is impossible/,
    but: /The barrier counts -1 parts; its ledger has 0\./,
    repair: 'compare',
    after: 'barrier-open',
  },
  'owned-counter-drift': {
    async make(on) {
      const id = await continuation(on)
      await on.query('update holdfast.owned_barrier set arrived = 1')
      return id
    },
    code: 'barrier-count-drifted',
    says: /counts 1, but by its ledger 0 of 2 parts have arrived/,
    but: /The barrier counts 1 parts; its ledger has 0\./,
    repair: 'compare',
    after: 'barrier-open',
  },
  'owned-expired': {
    async make(on) {
      const id = await continuation(on, { expires: 60_000 })
      await expire(on.query, 'b')
      return id
    },
    code: 'barrier-expired',
    says: /^not submitted: barrier "b" expired [\d.]+ s ago, and 0 of 2 parts have arrived\.$/,
    next: /closed/,
    repair: 'close',
    after: 'barrier-closed',
  },
  'owned-rearmed': {
    async make(on) {
      await continuation(on)
      return continuation(on, { expires: 60_000 })
    },
    code: 'barrier-rearmed',
    says: /was re-armed .* ago; 0 of 2 parts have arrived; it expires in \d+ s\.$/,
    next: /last part to arrive submits it/,
  },
  'owned-tenant-missing': {
    async make(on) {
      const id = await overdueOwned(on)
      await on.query('update holdfast.owned_barrier set tenant = null')
      return id
    },
    code: 'barrier-tenant-missing',
    says: /it has no tenant, so its owner `flows` cannot be asked/,
    next: /set it in holdfast\.owned_barrier/,
  },
  'owner-unreachable': {
    make: (on) => overdueOwned(on, 3),
    code: 'owner-silent',
    says: /its owner `flows` was asked 3 times without a conclusive answer/,
    next: /asked again/,
  },
  'owner-unclear': {
    make: (on) => overdueOwned(on, 1),
    code: 'owner-silent',
    says: /was asked once without a conclusive answer/,
    next: /kept until it answers/,
    looksLike: 'owner-unreachable',
  },
  'owner-ended': {
    make: (on) => overdueOwned(on),
    code: 'owner-to-ask',
    says: /its owner `flows` is asked next/,
    next: /reports that it has ended, and the barrier is removed/,
    looksLike: 'owned-expired',
  },
  'owner-unknown': {
    async make(on) {
      const id = await overdueOwned(on)
      await on.query(`update holdfast.owned_barrier set expires_at = now() - interval '1 min'`)
      return id
    },
    code: 'owner-unknown',
    says: /its owner `flows` was never asked, so it is not configured in any process that runs a worker or reaper/,
    next: /as soon as a process with this owner runs a worker or reaper/,
  },
  'delivery-not-planned': {
    async make(on) {
      await on.hf.webhooks.create({ url: 'https://example.com/in', types: 'job.finished' })
      return (await on.given.finished()).id
    },
    code: 'webhook-not-planned',
    says: /^succeeded .*; but its webhooks are not planned: no reader is running for the group\.$/,
    but: /The log has events of this job up to \d+; group "webhooks" has read up to \d+\./,
    next: /plans them/,
  },
  'delivery-sender-died': {
    make: (on) =>
      delivery(on, { claimed_at: `now() - interval '20 s'`, next_at: `now() - interval '3 s'`, tries: '1' }),
    code: 'webhook-sender-died',
    says: /the sender of a webhook was lost: its claim ran out [\d.]+ s ago/,
    next: /sends it/,
  },
  'endpoint-disabled-with-pending': {
    async make(on) {
      const { id } = await on.hf.webhooks.create({ url: 'https://example.com/in', types: 'job.failed' })
      await on.query('update holdfast.endpoint set disabled_at = now()')
      return delivery(on, { endpoint_id: `'${id}'` })
    },
    code: 'webhook-endpoint-off',
    says: /pending for an endpoint that is disabled or deleted/,
    but: /A delivery says pending; its endpoint is disabled or deleted\./,
    next: /becomes a dead letter without being sent/,
  },
  'slot-not-ticked': {
    make: (on) => scheduled(on, `next_at = now() - interval '3 min'`),
    code: 'slot-overdue',
    says: /^succeeded .*; but the next slot of schedule `nightly` was due 3 min ago, and no process decides it\.$/,
    next: /The next process that works or reaps decides it \(missed: latest\)/,
  },
  'buffered-slot-forgotten': {
    make: (on) => scheduled(on, `buffered_at = now() - interval '1 min'`),
    code: 'slot-buffered',
    says: /^succeeded .*; the slot of schedule `nightly` that waited for it is not submitted yet\.$/,
    next: /submits it/,
  },
  'replaced-job-not-cancelled': {
    async make(on) {
      const { id } = await on.given.queued()
      await scheduled(on, 'cancel_job_ids = array[last_job_id]', id)
      return id
    },
    code: 'replaced',
    says: /^replaced: a later slot of schedule `nightly` took over, and it is not cancelled yet\.$/,
    next: /cancels it/,
  },
  'bulk-process-died': {
    async make(on) {
      const { id } = await on.given.queued({ kind: 'bulky' })
      const { id: bulk } = await on.hf.bulk.start({ operation: 'cancel', filter: { kind: 'bulky' } })
      await on.store.run(cancelJobs, { ids: [id], tenant: null, reason: 'wrong input', bulk })
      await on.query(
        `update holdfast.bulk set lease_until = now() - interval '3 s', next_at = now() - interval '1 min'`,
      )
      on.later(() => on.query('delete from holdfast.bulk'))
      return id
    },
    code: 'bulk-abandoned',
    says: /^cancelled .*: wrong input \(bulk operation [-0-9a-f]{36}\); the process of that operation was lost: its lease ran out [\d.]+ s ago\.$/,
    next: /Another process carries the operation on/,
  },
  'leader-hangs': {
    async make(on) {
      await on.query(`update holdfast.leader set lease_until = now() - interval '3 min'`)
      return (await on.given.attemptOfDeadSession()).id
    },
    code: 'nobody-leads',
    says: /^lost: .*; and there is no leader: the lease of the last one ran out 3 min ago\.$/,
    but: /The leader row names a leader in term 1; its lease ran out 3 min ago\./,
    next: /holdfast reap/,
    repair: 'revive',
    after: 'no-worker',
  },
  ...gateOrphansMade,
  'unknown-kind': {
    async make(on) {
      const { id, queue } = await on.given.queued({ kind: 'sample' })
      const sessionId = await serving(on, queue)
      await on.query(
        `update holdfast.session set ended_at = now(), heartbeat_at = now() - interval '3 h' where id = $1`,
        [sessionId],
      )
      return id
    },
    code: 'no-worker',
    says: /^waiting: no running worker handles kind `sample` in queue `lane-\d+`; last seen 3 h ago\.$/,
    next: /as soon as a worker that handles this kind starts/,
  },
}

/** A job that is the last one of a schedule. */
async function scheduled(on: On, change: string, given?: string): Promise<string> {
  const id = given ?? (await on.given.finished()).id
  await on.query(
    `insert into holdfast.schedule (tenant, name, kind, queue, crash_budget, kind_priority, input, every_ms, missed, missed_window_ms, missed_cap, overlap,
      next_at, due_at, last_job_id)
     values ('default', 'nightly', 'sample', 'default', 3, 2, 'null', 60000, 'latest', 0, 1, 'skip', now() + interval '1 h', now() + interval '1 h', $1)`,
    [id],
  )
  await on.query(
    `insert into holdfast.schedule_slot (tenant, name, slot_at, what, job_id) values ('default', 'nightly', now(), 'submitted', $1)`,
    [id],
  )
  await on.query(`update holdfast.schedule set ${change}`)
  return id
}

async function hung(on: On): Promise<string> {
  const { id } = await on.given.running()
  await on.query(`update holdfast.lease set deadline_at = now() - interval '1 s' where job_ids @> array[$1::uuid]`, [
    id,
  ])
  return id
}

/** Everything else that can be said. All of it is made in one database. */
export const othersMade: Made[] = [
  {
    async make(on) {
      const running = await on.given.running()
      await on.store.run(snoozeJobs, { fences: [running], delaysMs: [60_000] })
      return running.id
    },
    code: 'snoozed',
    says: /^snoozed: attempt 1 was given back by its handler; it is due again in \d+ s\.$/,
    next: /no running worker/,
  },
  {
    async make(on) {
      const running = await on.given.running()
      const wait = { fence: running, stage: 0, signal: 'approved', timeoutMs: 60_000 }
      await on.store.run(awaitSignal, wait)
      await on.store.run(awaitSignals, { fences: [running], signals: ['approved'] })
      return running.id
    },
    code: 'waits-for-signal',
    says: /^waiting: it waits for the signal `approved`, for another \d+ s\.$/,
    next: /as soon as the signal is sent/,
  },
  {
    async make(on) {
      const { id, queue } = await on.given.queued()
      await on.hf.pauseQueue(queue)
      return id
    },
    code: 'queue-paused',
    says: /^waiting: queue `lane-\d+` was paused/,
    next: /until someone resumes/,
    repair: 'resume-queue',
    after: 'no-worker',
  },
  {
    async make(on) {
      const running = await on.given.running()
      await on.store.run(retryJobs, { fences: [running], errors: [anError], delaysMs: [60_000] })
      return running.id
    },
    code: 'backing-off',
    says: /^waiting: attempt 1 failed \(It broke\.\); it is due again in \d+ s\.$/,
    next: /no running worker/,
  },
  {
    async make(on) {
      const { id, queue } = await on.given.queued({ delayMs: 60_000 })
      await serving(on, queue)
      return id
    },
    code: 'scheduled',
    says: /^scheduled: it is due in \d+ s\.$/,
    next: /becomes due, and a worker claims it/,
  },
  {
    async make(on) {
      const { id, queue } = await on.given.atSecondStage({ kind: 'short' })
      await on.query(
        `insert into holdfast.kind (name, queue, priority, crash_budget, stages) values ('short', $1, 2, 3, '[{"name":"run"}]')`,
        [queue],
      )
      await on.query(`update holdfast.session set kinds = '{short}', queues = array[$1]`, [queue])
      return id
    },
    code: 'stage-unknown',
    says: /is at stage 2, but kind `short` was last registered with 1 stage\.$/,
    but: /The row is at stage 2; the kind was last registered with 1\./,
    next: /whose kind has that stage/,
  },
  ...limitsMade,
  {
    async make(on) {
      const { id, queue } = await on.given.queued()
      await serving(on, queue)
      await setCrashes(on.query, 2, [id])
      return id
    },
    code: 'suspect',
    says: /lost 2 workers at this stage and is a suspect/,
    next: /at 3 lost workers it is quarantined/,
  },
  {
    async make(on) {
      const first = await on.given.queued()
      const { queue } = first
      const sessionId = await serving(on, queue, { concurrency: 1 })
      await on.given.claim({ sessionId, queue })
      return (await on.given.queued({ queue })).id
    },
    code: 'workers-busy',
    says: /^waiting: all workers that handle its kind \(1\) are busy with 1 job\.$/,
    next: /add workers/,
  },
  {
    async make(on) {
      const { id, queue } = await on.given.queued()
      await beating(on, await serving(on, queue), { isClaiming: false, unresponsive: 1 })
      return id
    },
    code: 'workers-draining',
    says: /^waiting: all workers that handle its kind \(1\) are draining and no longer claim jobs; 1 handler ignored its abort signal\.$/,
    next: /another worker/,
  },
  {
    async make(on) {
      const { id, queue } = await on.given.queued()
      await beating(on, await serving(on, queue), { blockedMs: 60_000 })
      return id
    },
    code: 'workers-blocked',
    says: /^waiting: a handler blocks the event loop of all workers that handle its kind \(1\), for up to 60 s\.$/,
    next: /yields to the event loop/,
  },
  {
    async make(on) {
      const { id, sessionId } = await on.given.running()
      await beating(on, sessionId, { blockedMs: 60_000 })
      return id
    },
    code: 'worker-blocked',
    says: /^running on session \d+, whose event loop a handler has blocked for 60 s\.$/,
    next: /released/,
  },
  {
    async make(on) {
      const { queue } = await on.given.queued()
      await serving(on, queue)
      return (await on.given.queued({ queue, priority: 3 })).id
    },
    code: 'in-line',
    says: /^waiting: its turn has not come; 1 due job is ahead of it\.$/,
    next: /when its turn comes/,
  },
  {
    async make(on) {
      const { id, queue } = await on.given.queued()
      await serving(on, queue)
      return id
    },
    code: 'due',
    says: /^waiting: it became due .* ago, and 1 live worker may claim it\.$/,
    next: /next poll/,
  },
  {
    async make(on) {
      const { id, sessionId } = await on.given.running()
      await on.query(
        `update holdfast.session set heartbeat_at = now() - interval '40 s', lost_after = '1 s', locked_on = pg_postmaster_start_time() where id = $1`,
        [sessionId],
      )
      return id
    },
    code: 'lock-gone',
    says: /^lost: the process and lock of session \d+ are gone; its last heartbeat was 4\d s ago\.$/,
    but: /says its lease is valid; the server says its lock is gone\./,
    next: /returns to its queue/,
    repair: 'revive',
    after: 'no-worker',
  },
  {
    async make(on) {
      const { id, sessionId } = await on.given.running()
      await on.query(`update holdfast.session set heartbeat_at = now() - interval '10 s' where id = $1`, [sessionId])
      return id
    },
    code: 'heartbeat-late',
    says: /^running, but the last heartbeat of session \d+ was 1\d s ago\.$/,
    next: /sends a heartbeat/,
  },
  {
    make: async (on) => (await on.given.running()).id,
    code: 'running',
    says: /^running: attempt 1 at stage 1, on session \d+, last heartbeat .* ago\.$/,
    next: /counts as hung at its deadline/,
  },
  {
    async make(on) {
      const made = await waiting(on, { items: 3, expiresMs: 60_000 })
      await finish(on.store, (await claimItems(on, made)).slice(0, 1))
      return made.parent.id
    },
    code: 'waiting',
    says: /^waiting for its items: 1 of 3 have ended, 2 running; running longest: \d, attempt 1; expires in \d+ s\.$/,
    next: /at the expiry/,
  },
  {
    async make(on) {
      const { parent, items } = await producing(on)
      await on.store.run(failJobs, { fences: [parent], errors: [anError] })
      return items[0] as string
    },
    code: 'item-abandoned',
    says: /^queued, but no job waits for it: its parent .* is failed\.$/,
    but: /its parent is failed/,
    repair: 'stop-items',
    after: 'cancelled',
  },
  {
    async make(on) {
      const made = await waiting(on)
      await on.query('update holdfast.barrier set stopped_at = now() where id = $1', [made.barrier.id])
      return made.items[0] as string
    },
    code: 'item-stopped',
    says: /^queued, but its fan-out was stopped/,
    repair: 'stop-items',
    after: 'cancelled',
  },
  {
    make: (on) =>
      delivery(on, { next_at: `now() + interval '30 s'`, tries: '1', failures: '1', error: `'It was busy.'` }),
    code: 'webhook-pending',
    says: /1 webhook pending \(next attempt in \d+ s, after: It was busy\.\)\.$/,
    next: /is retried/,
  },
  {
    make: (on) => delivery(on, { event_seq: '2', state: `'dead'`, ended_at: 'now()', error: `'It was gone.'` }),
    code: 'webhook-dead',
    says: /1 webhook could not be delivered \(It was gone\.\)\.$/,
    next: null,
    repair: 'replay',
    after: 'webhook-pending',
  },
  {
    make: async (on) => (await on.given.finished()).id,
    code: 'succeeded',
    says: /^succeeded .* ago, at attempt 1\.$/,
    next: null,
  },
  {
    make: async (on) => (await on.given.finished('partial')).id,
    code: 'partial',
    says: /^partial .* ago: It broke\.$/,
    next: null,
    repair: 'redo',
    after: 'no-worker',
  },
  {
    make: async (on) => (await on.given.finished('failed')).id,
    code: 'failed',
    says: /^failed .* ago: It broke\.$/,
    next: null,
    repair: 'redo',
    after: 'no-worker',
  },
  {
    async make(on) {
      const { id } = await on.given.finished('failed')
      await on.query(
        `update holdfast.outcome set error = '{"code":"quarantined","message":"It lost 3 workers."}' where job_id = $1`,
        [id],
      )
      await on.query(`insert into holdfast.refusal (job_id, attempt, session_id, write) values ($1, 1, 1, 'finish')`, [
        id,
      ])
      return id
    },
    code: 'quarantined',
    says: /^failed .* ago: It lost 3 workers; 1 late write was refused\.$/,
    next: null,
    repair: 'redo',
    after: 'no-worker',
  },
  {
    async make(on) {
      const { id } = await on.given.queued()
      await on.store.run(cancelJobs, { ids: [id], tenant: null, reason: null })
      return id
    },
    code: 'cancelled',
    says: /^cancelled .* ago: The job was cancelled\.$/,
    next: null,
  },
  {
    async make(on) {
      const { job } = await on.hf.barrier.open({ id: 'lost', ...plain, parts: 0 })
      await on.query('delete from holdfast.ready where job_id = $1', [job])
      await on.query('delete from holdfast.job where id = $1', [job])
      return job
    },
    code: 'continuation-lost',
    says: /^lost: barrier "lost" fired/,
    but: /its job does not exist/,
    next: null,
  },
  {
    async make(on) {
      const { job } = await on.hf.barrier.open({ id: 'closed', ...plain })
      await on.query(`update holdfast.owned_barrier set expired_at = now() where id = 'closed'`)
      return job
    },
    code: 'barrier-closed',
    says: /^not submitted: barrier "closed" expired and was closed/,
    next: /unless the barrier is reopened/,
  },
  {
    async make(on) {
      const { job } = await on.hf.barrier.open({ id: 'marked', ...plain, ...owned })
      await expire(on.query, 'marked')
      const [row] = await on.query(`select arming from holdfast.owned_barrier where id = 'marked'`)
      await on.store.run(removeExpired, { id: 'marked', arming: Number(row?.arming), word: 'marked' })
      return job
    },
    code: 'barrier-given-up',
    says: /^not submitted: barrier "marked" expired, and 0 of 2 parts have arrived; execution "e-1" of owner `flows` was marked failed/,
    next: /gets its own job/,
  },
  {
    make: async (on) => (await on.hf.barrier.open({ id: 'open', ...plain })).job,
    code: 'barrier-open',
    says: /^not submitted yet: barrier "open" is open; 0 of 2 parts have arrived\.$/,
    next: /last part to arrive submits it/,
  },
]
