import { suspectByHand } from './afar.sql.ts'
import { eventually } from './deadline.ts'
import { manned, waitMs } from './manned.ts'
import type { Scenario } from './scenario.ts'

/** Workers that are served by others, which speak to the database in their name. */
export const remote: Scenario = {
  name: 'remote',
  provokes: 'remote workers that claim, report, settle twice and stop; one of their jobs has lost workers already',
  // these decide only here what a remote worker is told
  also: ['session.beat', 'job.release', 'session.close'],
  // before there are jobs, it finds nothing
  behind: { 'job.claim_remote': 'job.submit', 'attempt.forgotten': 'job.claim_remote' },
  async run(on) {
    await manned(on)
    await Promise.all(on.shuffled(['afar', 'afar-flaky', 'afar-usable', 'afar-chatty']).map((kind) => on.submit(kind)))
    const suspect = await on.submit('afar-suspect')
    await on.ask(suspectByHand, { id: suspect })
    await Promise.all([on.crew.fill('remote-1', 'remote'), on.crew.fill('remote-2', 'remote')])
    await eventually(() => on.crew.effects.some(({ jobId }) => jobId === suspect), {
      ms: waitMs,
      what: 'the job that is suspected had started',
    })
    for (const seat of on.shuffled(['remote-1', 'remote-2'])) await on.crew.relieve(seat)
  },
}
