// A tenant without events asks for its events, 50 requests at once, beside half a million events of others.
import { ask, inLanes, makeAgent } from './support/ask.mjs'

export const measures = ['submit', 'get']

const events = 500_000

export async function prepare({ query }) {
  await query(`insert into holdfast.event (type, state, job_id, kind, tenant)
    select 'job.submitted', 'queued', gen_random_uuid(), 'noop', 'other' from generate_series(1, ${events})`)
  await query('vacuum analyze holdfast.event')
}

export async function attack({ url, keys, signal, begun }) {
  const agent = makeAgent(50)
  begun()
  await inLanes(50, signal, () => ask({ agent, url, path: '/v1/events', key: keys.empty }))
}
