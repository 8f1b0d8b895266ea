// The cost of one sweep of the reaper next to many finished and many queued rows.
import { claimable, finished } from './rows.mjs'

/** How long each statement of a sweep takes when there is nothing to do, in milliseconds. */
export async function measureSweep(client, count) {
  await client.query(finished(count))
  await client.query(claimable(count))
  const { endDeadSessions, strandedKinds } = await import('#holdfast/reaper/session.sql')
  const { findAbandoned, findHung } = await import('#holdfast/reaper/revive.sql')
  const { textOf } = await import('#holdfast/postgres/sql')
  const figures = {}
  for (const statement of [endDeadSessions, findAbandoned, findHung, strandedKinds]) {
    const { values, ...piece } = statement.build({ limit: 500 })
    const times = []
    for (let turn = 0; turn < 20; turn++) {
      const startedMs = performance.now()
      await client.query(textOf({ ...piece, values }), [...values])
      times.push(performance.now() - startedMs)
    }
    times.sort((a, b) => a - b)
    figures[`sweep, ${statement.name}, ms`] = times[10]
  }
  return figures
}
