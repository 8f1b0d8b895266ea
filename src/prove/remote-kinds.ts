import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentError } from '../errors/errors.ts'
import { type AnyJob, defineJob } from '../job/define.ts'
import { chat, failFirst, snoozeFirst } from './kinds.ts'
import { observed, type Report } from './observed.ts'

/** The kinds that only the remote workers of a proof run. */
export function remoteKinds(report: Report): Record<string, AnyJob> {
  const ok = observed(report, () => {})
  const doomed = observed(report, () => {
    throw new PermanentError('This stage always fails.')
  })
  const all: AnyJob[] = [
    defineJob('remote-staged', {
      stages: [
        { name: 'first', run: ok },
        { name: 'second', run: ok },
      ],
    }),
    defineJob('remote-flaky', { run: observed(report, failFirst) }),
    defineJob('remote-usable', {
      stages: [
        { name: 'needed', run: ok },
        { name: 'extra', optional: true, run: doomed },
      ],
    }),
    defineJob('remote-snoozing', { run: observed(report, snoozeFirst) }),
    // the server waits for the signal
    defineJob('remote-approval', {
      stages: [
        { name: 'approve', wait: { signal: 'approved', timeoutMs: 120_000 } },
        { name: 'publish', run: ok },
      ],
    }),
    // a scenario limits it
    defineJob('remote-limited', { run: ok }),
    defineJob('remote-chatty', { run: observed(report, chat) }),
    // its first attempt is long enough that a worker that stops has to give it back, even on a slow machine
    defineJob('remote-suspect', {
      run: observed(report, ({ signal, attempt }) => sleep(attempt === 1 ? 3_000 : 10, undefined, { signal })),
    }),
  ]
  return Object.fromEntries(all.map((job) => [job.kind, job]))
}
