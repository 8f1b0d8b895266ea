import { logOrphans } from './log-orphans.ts'
import { ownedOrphans } from './owned-orphans.ts'
import { webhookOrphans } from './webhook-orphans.ts'

/**
 * The catalogue of orphans: every way in which a job can come to a stand, declared once. The docs table and
 * the names in metrics and logs derive from it. A class with a duty is found and revived by the leader; the others move by themselves, and the entry says how.
 */
export interface OrphanClass {
  /** How it comes about. */
  readonly comesAbout: string
  readonly found: string
  readonly revived: string
  /** Which rung of the ladder, or which setting, bounds it. */
  readonly bound: string
  readonly duty: string | null
  /** The test that makes it by a real crash. */
  readonly test: string
}

/** Every class of orphan, by name. */
export const orphans = {
  'submitted-unannounced': {
    comesAbout: 'The submit commits, but its wake-up is lost, or its sender dies before anybody hears of it.',
    found: 'Every idle worker polls its lanes; a queued row needs no announcement.',
    revived: 'The next poll claims it.',
    bound: 'pollMs',
    duty: null,
    test: 'a job whose wake-up was lost is claimed by the next poll',
  },
  'retry-timer-died': {
    comesAbout: 'The worker that scheduled a retry dies before the backoff is over.',
    found: 'The backoff is a column (run_at), not a timer; the poll of any worker finds it due.',
    revived: 'The first poll after run_at claims it.',
    bound: 'run_at + pollMs',
    duty: null,
    test: 'a retry survives the death of the worker that scheduled it',
  },
  'next-stage-not-started': {
    comesAbout: 'A stage is committed and advanced, and its worker dies before anybody starts the next one.',
    found: 'The row is queued at its next stage; polls find it.',
    revived: 'The next poll claims it; the committed output stays.',
    bound: 'pollMs',
    duty: null,
    test: 'a job advanced by a worker that died goes on with its next stage',
  },
  'running-dead-session': {
    comesAbout: 'kill -9, crash, out of memory, reboot, network cut or freeze of the process that runs it.',
    found: 'Its session has ended: seen by the supervisor, by its lost lock, or by its lease.',
    revived: 'Back to its queue, crashes + 1; at its crash budget it is quarantined.',
    bound: 'rung 1, 2 or 3',
    duty: 'reviveAbandoned',
    test: 'the jobs of a worker killed with -9 run again within the bound',
  },
  'later-stage-dead-session': {
    comesAbout: 'As above, while a later stage runs.',
    found: 'As above.',
    revived: 'Back to its queue at the same stage; earlier outputs are kept.',
    bound: 'rung 1, 2 or 3',
    duty: 'reviveAbandoned',
    test: 'a worker killed in the second stage costs only the second stage',
  },
  'session-row-gone': {
    comesAbout: 'Somebody removed a session row by hand, or restored half a backup.',
    found: 'A running row whose session does not exist.',
    revived: 'As if the session had ended.',
    bound: 'sweepMs',
    duty: 'reviveAbandoned',
    test: 'a running job whose session row is gone is revived',
  },
  'claimed-by-ended-session': {
    comesAbout: 'A claim commits at the very moment at which its session is ended.',
    found: 'A running row whose session has ended.',
    revived: 'As above.',
    bound: 'sweepMs',
    duty: 'reviveAbandoned',
    test: 'a claim that commits after its session was ended is taken back',
  },
  'hung-handler': {
    comesAbout: 'A handler blocks or waits for ever although its process lives and beats.',
    found: 'Its deadline (time-out, hold and grace) has passed by the clock of the database.',
    revived: 'As above; its late outcome is refused.',
    bound: 'rung 4',
    duty: 'reviveHung',
    test: 'a handler that blocks its process past its deadline loses the job',
  },
  'finish-failed-worker-lives': {
    comesAbout: 'The settle fails (broken connection, restarted server) while the worker lives on.',
    found:
      'The worker itself: a settle is tried again until it is answered or the lease is lost. Behind it, the deadline.',
    revived: 'The same outcome is written again; a commit whose answer was lost is recognised by its event.',
    bound: 'reconnection; at the latest rung 4',
    duty: 'reviveHung',
    test: 'a settle whose connection breaks is tried again until it is answered',
  },
  'outcome-refused': {
    comesAbout:
      'The database refuses every ending of a job: a trigger or a constraint of somebody else speaks against it.',
    found: 'The worker: first the outcome is refused, then the failure that tells of it.',
    revived:
      'The job waits with its outcome and is not run again; the outcome is tried again, each time after twice as long.',
    bound: 'at most 10 min after the database accepts it',
    duty: 'settleParked',
    test: 'a job whose every ending is refused waits with its outcome, is not run again, and ends when the database lets it',
  },
  'cancelled-still-executing': {
    comesAbout: 'A running job is cancelled, and the wake-up to its worker is lost.',
    found: 'Every worker asks each heartbeat which of its attempts are still its own.',
    revived: "The handler's signal fires; whatever it returns is refused.",
    bound: 'heartbeatMs',
    duty: null,
    test: 'a cancelled job stops executing although its wake-up was lost',
  },
  'handler-ignores-signal': {
    comesAbout: 'A handler is told to end (its job was cancelled or given away, or its time is over) and does not.',
    found: 'The worker looks at its clock: the handler has not returned within the grace.',
    revived:
      'Its place is freed, and it is shown until it returns; at `maxUnresponsive` of them the worker drains and its process is replaced.',
    bound: 'timeoutGraceMs',
    duty: null,
    test: 'a worker whose handlers ignore a cancel claims again after the grace, and shows them until they return',
  },
  'fan-out-unsealed': {
    comesAbout: 'The producer of a fan-out dies half-way.',
    found: 'Its job is running under a dead session.',
    revived: 'Revived as any job; the second run adds only the items that are missing, and seals once.',
    bound: 'rung 1, 2 or 3',
    duty: 'reviveAbandoned',
    test: 'a producer that died half-way adds no item twice and seals once',
  },
  'drained-not-joined': {
    comesAbout: 'The last item has ended, and the continuation never fired.',
    found: 'An armed barrier without a live item.',
    revived: 'The continuation is fired.',
    bound: 'sweepMs',
    duty: 'joinDrained',
    test: 'a drained barrier whose join never fired is joined',
  },
  'items-lost': {
    comesAbout: 'Items were deleted under an open barrier.',
    found: 'No live item is left, and the ledger holds fewer than the total.',
    revived: 'The missing ones count as failed, and the join fires.',
    bound: 'sweepMs',
    duty: 'joinDrained',
    test: 'items deleted under an open barrier count as failed',
  },
  'negative-count': {
    comesAbout: 'A counter was changed by hand, or by a restored backup.',
    found: 'A counter below zero, when the barrier is drained or quiet.',
    revived: 'Counted anew by the ledger.',
    bound: '10 s',
    duty: 'recount',
    test: 'a negative counter is counted anew',
  },
  'counter-drift': {
    comesAbout: 'The counters of a barrier disagree with its items.',
    found:
      'A barrier that is quiet, or that has counted all its items although one is live, is compared with its ledger.',
    revived: 'Counted anew by the ledger. It joins nothing and stops nothing meanwhile: the ledger decides both.',
    bound: '10 s after it fell quiet',
    duty: 'recount',
    test: 'counters that drifted are counted anew by the ledger',
  },
  'barrier-expired': {
    comesAbout: 'A fan-out takes longer than its expiry.',
    found: 'The expiry is a column.',
    revived:
      'Work that is merely slow is cancelled; work whose workers died is revived first and gets the same time again.',
    bound: 'its expiry + sweepMs; if a worker of it is not heard of after the expiry, when the ladder has decided',
    duty: 'expireBarriers',
    test: 'a fan-out past its expiry is stopped',
  },
  'stop-unfinished': {
    comesAbout: 'One item too many failed, and the worker that saw it died before it cancelled the rest.',
    found: 'A stopped barrier with live items.',
    revived: 'The rest is cancelled, and the join fires.',
    bound: 'sweepMs',
    duty: 'stopUnstopped',
    test: 'a stop that was interrupted is finished',
  },
  'fan-out-abandoned': {
    comesAbout: 'A job ends (failed, quarantined) while items of an unsealed fan-out still live.',
    found: 'An open barrier whose job is not live.',
    revived: 'Its items are cancelled, and it is closed.',
    bound: 'sweepMs',
    duty: 'stopUnstopped',
    test: 'the items of a parent that failed while fanning out are cancelled',
  },
  'item-without-barrier': {
    comesAbout: 'Items outlive their barrier: it was removed by hand, or their parent was redone from the start.',
    found: 'Live items that name a barrier which does not exist.',
    revived: 'They are cancelled; nothing fires.',
    bound: 'sweepMs',
    duty: 'stopStrays',
    test: 'the items of a barrier that is gone are cancelled, and nothing fires',
  },
  'waiting-without-barrier': {
    comesAbout: 'A barrier row was removed by hand, or its join was recorded and never reached the job.',
    found: 'A waiting job without an armed barrier of its stage.',
    revived: 'Back to its queue: a joined barrier is joined, a missing one is opened anew.',
    bound: 'sweepMs',
    duty: 'requeueWaiting',
    test: 'a waiting job that no barrier will join goes on',
  },
  ...logOrphans,
  ...ownedOrphans,
  ...webhookOrphans,
  'leader-hangs': {
    comesAbout:
      'The leader freezes, loses its network or dies in the middle of a sweep; or another transaction keeps its row locked.',
    found: 'Its lease runs out; candidates ask every leaderRenewMs.',
    revived:
      'Another process leads in a new term; the old one is refused. While the row is locked, every candidate sweeps.',
    bound: 'leaderLeaseMs + leaderRenewMs',
    duty: null,
    test: 'a frozen leader is replaced, and refused when it wakes',
  },
  'unknown-kind': {
    comesAbout: 'Jobs are submitted for a kind that no living worker knows, or all that knew it were removed.',
    found: 'Lanes with due jobs that no living session serves.',
    revived: 'Never discarded: reported each minute, and claimed as soon as a worker knows the kind.',
    bound: 'until a worker with this kind starts',
    duty: 'reportStranded',
    test: 'a job of an unknown kind is left alone and reported',
  },
} as const satisfies Record<string, OrphanClass>

/** The name of a class of orphans. */
export type OrphanName = keyof typeof orphans

/** The catalogue as a Markdown table, for the docs. */
export function orphanTable(): string {
  const rows = Object.entries(orphans).map(
    ([name, { comesAbout, found, revived, bound, test }]) =>
      `| \`${name}\` | ${comesAbout} | ${found} | ${revived} | ${bound} | ${test} |`,
  )
  return [
    '| class | how it comes about | how it is found | how it moves again | bound | test |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n')
}
