// What one sweep of the reaper costs beside many finished and many queued rows.
import { claimable, finished } from './rows.mjs'

/** Milliseconds of each statement of a sweep, when there is nothing to do. */
export async function measureSweep(client, count) {
  await client.query(finished(count))
  await client.query(claimable(count))
  const { endDeadSessions, strandedKinds } = await import('#holdfast/reaper/session.sql')
  const { findAbandoned, findHung } = await import('#holdfast/reaper/revive.sql')
  const { textOf } = await import('#holdfast/store/sql')
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
