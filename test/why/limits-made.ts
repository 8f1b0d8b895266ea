import type { Made, On } from './made.ts'
import { serving } from './made.ts'

/** A limit on a queue, and a worker that could run its jobs. */
async function limited(on: On, queue: string, rules: object): Promise<void> {
  await serving(on, queue)
  const chosen = JSON.stringify({ whole: rules })
  await on.query(`insert into holdfast.limiter (scope, name, chosen, is_adopted) values ('queue', $2, $1, true)`, [
    chosen,
    queue,
  ])
}

/** A job that waits at its gate. */
async function atGate(on: On, rules: object): Promise<string> {
  const { id, queue } = await on.given.queued()
  await limited(on, queue, rules)
  await on.query(`update holdfast.ready set gate_key = ' ' where job_id = $1`, [id])
  return id
}

/** The situations of limits that are orphans. */
export const gateOrphansMade = {
  'gate-closed': {
    async make(on: On) {
      const id = await atGate(on, { concurrency: 5 })
      await on.query('delete from holdfast.gate_hint')
      return id
    },
    code: 'gate-closed',
    says: /^waiting: the gate of its limit is closed, although slots are free\.$/,
    next: /opens the gate/,
  },
  'limit-without-gate': {
    async make(on: On) {
      const { id, queue } = await on.given.queued()
      await limited(on, queue, { concurrency: 5 })
      return id
    },
    code: 'limit-without-gate',
    says: /^waiting: a limit was set on kind `sample` or queue `lane-\d+` after it was queued\.$/,
    next: /sends it to its gate/,
  },
} satisfies Record<string, Made>

/** The other situations of limits. */
export const limitsMade: Made[] = [
  {
    async make(on) {
      const { queue } = await on.given.running()
      await limited(on, queue, { concurrency: 1 })
      await on.query(`update holdfast.lease set gate_key = ' ' where queue = $1`, [queue])
      return (await on.given.queued({ queue })).id
    },
    code: 'limit-full',
    says: /^waiting: the limit on queue `lane-\d+` is 1, and 1 job holds its slots: [0-9a-f-]{36} \(session \d+\)\.$/,
    next: /when one of them ends/,
  },
  {
    async make(on) {
      const id = await atGate(on, { concurrency: 5 })
      await on.query(
        `insert into holdfast.gate (queue, kind, key, held_until, next_at) select queue, kind, ' ', now() + interval '1 h', now() + interval '1 h' from holdfast.ready where job_id = $1`,
        [id],
      )
      return id
    },
    code: 'limit-held',
    says: /^waiting: a job of its kind was rate limited, so all of them are held back for \d+ min/,
    next: /after that/,
  },
  {
    async make(on) {
      const id = await atGate(on, { rate: { limit: 10, perMs: 3_600_000 } })
      await on.query(
        `insert into holdfast.limiter_bucket select scope, name, changed_txid, 0, now() from holdfast.limiter where rate is not null`,
      )
      return id
    },
    code: 'limit-rate',
    says: /^waiting: the rate of queue `lane-\d+` is 10 per 60 min, and is used up\.$/,
    next: /when the rate allows it/,
  },
]
