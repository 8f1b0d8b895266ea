/**
 * The catalogue of orphans: every way in which a job can come to a stand, declared once. Docs, metrics, `why` and `prove` derive from
 * it. A class with a duty is found and revived by the leader; the others move by themselves, and the entry says how.
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
  'cancelled-still-executing': {
    comesAbout: 'A running job is cancelled, and the wake-up to its worker is lost.',
    found: 'Every worker asks each heartbeat which of its attempts are still its own.',
    revived: "The handler's signal fires; whatever it returns is refused.",
    bound: 'heartbeatMs',
    duty: null,
    test: 'a cancelled job stops executing although its wake-up was lost',
  },
  'leader-hangs': {
    comesAbout: 'The leader freezes, loses its network or dies in the middle of a sweep.',
    found: 'Its lease runs out; candidates ask every leaderRenewMs.',
    revived: 'Another process leads in a new term; the old one is refused.',
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
