import { ownedOrphans } from './barrier-orphans.ts'
import { logOrphans } from './log-orphans.ts'
import { webhookOrphans } from './webhook-orphans.ts'

/**
 * The catalogue of orphans: every way a job can stall, declared once. The docs table and the names in metrics and logs derive from it. The
 * leader finds and revives classes that have a duty; the others recover without one, as their entries describe.
 */
export interface OrphanClass {
  /** How it happens. */
  readonly comesAbout: string
  readonly found: string
  readonly revived: string
  /** Which rung of the ladder, or which setting, bounds it. */
  readonly bound: string
  readonly duty: string | null
  /** The test that produces it with a real crash. */
  readonly test: string
}

/** Every orphan class, by name. */
export const orphans = {
  'submitted-unannounced': {
    comesAbout:
      'The submit commits, but its wake-up is lost, or the submitting process dies before anyone is notified.',
    found: 'Every idle worker polls its lanes; a queued row needs no wake-up.',
    revived: 'The next poll claims it.',
    bound: 'pollMs',
    duty: null,
    test: 'a job whose wake-up was lost is claimed by the next poll',
  },
  'retry-timer-died': {
    comesAbout: 'The worker that scheduled a retry dies before the backoff ends.',
    found: 'The backoff is a column (run_at), not a timer; any worker that polls finds the job due.',
    revived: 'The first poll after run_at claims it.',
    bound: 'run_at + pollMs',
    duty: null,
    test: 'a retry survives the death of the worker that scheduled it',
  },
  'next-stage-not-started': {
    comesAbout: 'A stage commits, and its worker dies before the next stage starts.',
    found: 'The row is queued at its next stage, and polls find it.',
    revived: 'The next poll claims it; the committed output stays.',
    bound: 'pollMs',
    duty: null,
    test: 'a job advanced by a worker that died goes on with its next stage',
  },
  'running-dead-session': {
    comesAbout: 'kill -9, crash, out of memory, reboot, network partition or freeze of the worker process.',
    found: 'Its session has ended: the supervisor saw it exit, its lock is gone, or its lease ran out.',
    revived: 'The job returns to its queue with crashes + 1; at its crash budget it is quarantined.',
    bound: 'rung 1, 2 or 3',
    duty: 'reviveAbandoned',
    test: 'the jobs of a worker killed with -9 run again within the bound',
  },
  'later-stage-dead-session': {
    comesAbout: 'As above, during a later stage.',
    found: 'As above.',
    revived: 'The job returns to its queue at the same stage; earlier outputs are kept.',
    bound: 'rung 1, 2 or 3',
    duty: 'reviveAbandoned',
    test: 'a worker killed in the second stage costs only the second stage',
  },
  'session-row-gone': {
    comesAbout: 'Someone deleted a session row by hand, or restored a partial backup.',
    found: 'A running row whose session does not exist.',
    revived: 'Same as for a session that has ended.',
    bound: 'sweepMs',
    duty: 'reviveAbandoned',
    test: 'a running job whose session row is gone is revived',
  },
  'claimed-by-ended-session': {
    comesAbout: 'A claim commits at the moment its session is ended.',
    found: 'A running row whose session has ended.',
    revived: 'As above.',
    bound: 'sweepMs',
    duty: 'reviveAbandoned',
    test: 'a claim that commits after its session was ended is taken back',
  },
  'hung-handler': {
    comesAbout: 'A handler blocks or waits forever while its process is alive and sends heartbeats.',
    found: 'Its deadline (timeout, hold and grace) has passed by the database clock.',
    revived: 'As above; its late outcome is refused.',
    bound: 'rung 4',
    duty: 'reviveHung',
    test: 'a handler that blocks its process past its deadline loses the job',
  },
  'finish-failed-worker-lives': {
    comesAbout: 'The settle fails (broken connection, server restart) while the worker stays alive.',
    found: 'The worker retries the settle until it gets an answer or loses the lease. The deadline is the fallback.',
    revived:
      'The worker writes the same outcome again; if the first commit succeeded and only its answer was lost, the event shows it.',
    bound: 'reconnection; rung 4 at the latest',
    duty: 'reviveHung',
    test: 'a settle whose connection breaks is retried until it is answered',
  },
  'outcome-refused': {
    comesAbout: 'The database rejects every outcome of a job, for example because of a custom trigger or constraint.',
    found: 'The worker sees the database reject the outcome, and then also the failure that would report this.',
    revived:
      'The job is parked with its outcome and does not run again; writing the outcome is retried with exponential backoff.',
    bound: 'at most 10 min after the database accepts it',
    duty: 'settleParked',
    test: 'a job whose every outcome is rejected is parked, does not run again, and ends when the database accepts its outcome',
  },
  unclaimable: {
    comesAbout:
      "Something that belongs to a job can't be read, or a custom trigger rejects its claim, so every claim fails.",
    found:
      'When a claim fails for a reason that does not pass, the worker tries the due jobs one by one, and undoes it.',
    revived:
      'The job is postponed by a minute at a time, or longer if there are many, and reported; all other jobs are claimed.',
    bound: 'at most 1 min after it can be claimed, or 15 min if there are many',
    duty: null,
    test: 'a job that cannot be claimed is postponed, and stops no other',
  },
  'cancelled-still-executing': {
    comesAbout: 'A running job is cancelled, and the wake-up to its worker is lost.',
    found: 'With each heartbeat, every worker checks which attempts it still owns.',
    revived: "The handler's abort signal fires; its return value is discarded.",
    bound: 'heartbeatMs',
    duty: null,
    test: 'a cancelled job stops executing although its wake-up was lost',
  },
  'handler-ignores-signal': {
    comesAbout: 'A handler ignores its abort signal after its job was cancelled or reassigned, or its timeout passed.',
    found: 'By the worker clock, the handler has not returned within the grace period.',
    revived:
      'Its slot is freed, and it is reported until it returns; once there are `maxUnresponsive` of them, the worker drains and its process is replaced.',
    bound: 'timeoutGraceMs',
    duty: null,
    test: 'a worker whose handlers ignore a cancel claims again after the grace, and shows them until they return',
  },
  'fan-out-unsealed': {
    comesAbout: 'The producer of a fan-out dies partway through.',
    found: 'Its job is running under a dead session.',
    revived: 'The job is revived like any other; the second run adds only the missing items.',
    bound: 'rung 1, 2 or 3',
    duty: 'reviveAbandoned',
    test: 'a producer that died partway through adds no item twice and seals once',
  },
  'drained-not-joined': {
    comesAbout: 'The last item has ended, but the continuation never fired.',
    found: 'An armed barrier without live items.',
    revived: 'The leader fires the continuation.',
    bound: 'sweepMs',
    duty: 'joinDrained',
    test: 'a drained barrier whose join never fired is joined',
  },
  'items-lost': {
    comesAbout: 'Items were deleted under an open barrier.',
    found: 'No live item is left, and the ledger has fewer items than the total.',
    revived: 'The missing items count as failed, and the join fires.',
    bound: 'sweepMs',
    duty: 'joinDrained',
    test: 'items deleted under an open barrier count as failed',
  },
  'negative-count': {
    comesAbout: 'Someone changed a counter by hand, or restored a backup.',
    found: 'A counter is below zero on a drained or quiet barrier.',
    revived: 'The counters are recounted from the ledger.',
    bound: '10 s',
    duty: 'recount',
    test: 'a negative counter is recounted',
  },
  'counter-drift': {
    comesAbout: 'The counters of a barrier disagree with its items.',
    found: 'A quiet barrier, or one that counted all items while one is still live, is compared with its ledger.',
    revived:
      'The counters are recounted from the ledger. Until then the barrier neither joins nor stops, because the ledger decides both.',
    bound: '10 s after it goes quiet, 100 at a time',
    duty: 'recount',
    test: 'counters that drifted are recounted from the ledger',
  },
  'barrier-expired': {
    comesAbout: 'A fan-out takes longer than its expiry.',
    found: 'The expiry is a column.',
    revived:
      'Slow items are cancelled. If workers died, their items are revived first, and the expiry is extended by the same time.',
    bound:
      'its expiry + sweepMs; if one of its workers sends no heartbeat after the expiry, as soon as the ladder has decided whether that worker is dead',
    duty: 'expireBarriers',
    test: 'a fan-out past its expiry is stopped',
  },
  'stop-unfinished': {
    comesAbout: 'More items failed than allowed, and the worker that noticed died before it cancelled the rest.',
    found: 'A stopped barrier with live items.',
    revived: 'The remaining items are cancelled, and the join fires.',
    bound: 'sweepMs',
    duty: 'stopUnstopped',
    test: 'a stop that was interrupted is finished',
  },
  'fan-out-abandoned': {
    comesAbout: 'A job ends (failed, quarantined) while it is still adding items, and some of them are live.',
    found: 'An open barrier whose job is not live.',
    revived: 'Its items are cancelled, and the barrier is closed.',
    bound: 'sweepMs',
    duty: 'stopUnstopped',
    test: 'the items of a parent that failed while fanning out are cancelled',
  },
  'item-without-barrier': {
    comesAbout: 'Items outlive their barrier: someone deleted it by hand, or their parent was redone from the start.',
    found: 'Live items that reference a missing barrier.',
    revived: 'They are cancelled; nothing fires.',
    bound: 'sweepMs',
    duty: 'stopOrphanItems',
    test: 'the items of a barrier that is gone are cancelled, and nothing fires',
  },
  'waiting-without-barrier': {
    comesAbout: 'Someone deleted a barrier row by hand, or its join was recorded but never reached the job.',
    found: 'A waiting job without an armed barrier of its stage.',
    revived: 'The job returns to its queue: it resumes from a joined barrier, and reopens a missing one.',
    bound: 'sweepMs',
    duty: 'requeueWaiting',
    test: 'a waiting job that no barrier will join continues',
  },
  ...logOrphans,
  ...ownedOrphans,
  ...webhookOrphans,
  'leader-hangs': {
    comesAbout:
      'The leader freezes, loses its network or dies in the middle of a sweep, or another transaction holds a lock on its row.',
    found: 'Its lease runs out; candidates try to acquire it every leaderRenewMs.',
    revived:
      'Another process becomes leader in a new term, and writes of the old one are refused. While the row is locked, every candidate sweeps.',
    bound: 'leaderLeaseMs + leaderRenewMs',
    duty: null,
    test: 'a frozen leader is replaced, and refused when it wakes',
  },
  'unknown-kind': {
    comesAbout:
      'Jobs are submitted for a kind that no running worker handles, or all workers that handled it were removed.',
    found: 'Lanes with due jobs that no live session serves.',
    revived:
      'The jobs are never discarded: they are reported every minute, and claimed as soon as a worker handles the kind.',
    bound: 'until a worker with this kind starts',
    duty: 'reportStranded',
    test: 'a job of an unknown kind is left alone and reported',
  },
} as const satisfies Record<string, OrphanClass>

/** The name of an orphan class. */
export type OrphanName = keyof typeof orphans

/** The catalogue as a Markdown table, for the docs. */
export function orphanTable(): string {
  const rows = Object.entries(orphans).map(
    ([name, { comesAbout, found, revived, bound, test }]) =>
      `| \`${name}\` | ${comesAbout} | ${found} | ${revived} | ${bound} | ${test} |`,
  )
  return [
    '| class | how it happens | how it is detected | how it recovers | bound | test |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}
