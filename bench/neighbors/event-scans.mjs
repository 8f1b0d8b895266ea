// A tenant without events asks for its events, 50 requests at once ten times a second, next to half a million events of others.
import { ask, atRate, elsewhere, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']

const events = 500_000

export async function prepare({ query }) {
  await query(`insert into holdfast.event_log (type, state, job_id, kind, tenant)
    select 'job.submitted', 'queued', gen_random_uuid(), 'noop', 'other' from generate_series(1, ${events})`)
  await query('vacuum analyze holdfast.event_log')
}

const atOnce = 50

export async function attack({ url, keys, signal, begun }) {
  const agent = makeAgent(atOnce, elsewhere)
  begun()
  await atRate({ perSecond: 10, most: 1 }, signal, () =>
    Promise.all(Array.from({ length: atOnce }, () => ask({ agent, url, path: '/v1/events', key: keys.empty }))),
  )
}
