import { asideEvents, sentDeliveries } from './bus.sql.ts'
import type { Case } from './case.ts'
import { eventually } from './deadline.ts'
import { cancelStubborn, manned, waitMs } from './manned.ts'
import { proverGroup } from './reading.ts'
import { receiverPaths } from './receiver.ts'
import type { Scenario } from './scenario.ts'

/** A group of readers that shares its work, fails, parks, replays and begins anew. */
export const readers: Scenario = {
  name: 'readers',
  provokes: 'two readers of a group in two partitions, events that fail, one that is parked and replayed, a rewind',
  // before there are jobs, readers find nothing and only say that they want to be woken
  behind: {
    'event.mark': 'job.submit',
    'event.read': 'job.submit',
    'cursor.move': 'job.submit',
    'parked.due': 'event.park',
  },
  async run(on) {
    await Promise.all([manned(on), on.crew.fill('reader-1', 'reader'), on.crew.fill('reader-2', 'reader')])
    await eventually(async () => (await readingPids(on)).size === 2, {
      ms: waitMs,
      what: 'the two readers had shared the cursors',
    })
    await Promise.all([
      ...on.shuffled(['short', 'staged', 'flaky', 'doomed', 'usable', 'chatty']).map((kind) => on.submit(kind)),
      on.submitMany('short', 4),
    ])
    await replayUntilHandled(on)
    await Promise.all([on.bus.order({ do: 'look-at-events' }), on.bus.order({ do: 'read-once' })])
    await on.bus.order({ do: 'rewind' })
    await on.crew.relieve('reader-2')
  },
}

async function readingPids(on: Case): Promise<ReadonlySet<number>> {
  return new Set((await on.bus.cursors()).flatMap(({ pid }) => pid ?? []))
}

/** The event of the doomed job is parked, fails once more when it is replayed, and is handled then. */
async function replayUntilHandled(on: Case): Promise<void> {
  const parked = () => on.ask(asideEvents, { group: proverGroup })
  await eventually(async () => (await parked()).length > 0, { ms: waitMs, what: 'an event was parked' })
  await eventually(
    async () => {
      const now = await parked()
      if (now.length === 0) return true
      if (now.every(({ is_due }) => !is_due)) await on.bus.order({ do: 'replay-parked' })
      return false
    },
    { ms: waitMs, what: 'the parked event was handled', everyMs: 50 },
  )
}

/** Webhooks of an endpoint and of jobs, to a receiver that fails in every way. */
export const webhooks: Scenario = {
  name: 'webhooks',
  provokes: 'an endpoint and jobs with webhooks, whose receiver fails, refuses and takes; replays; an endpoint tended',
  also: ['group.find', 'group.open', 'event.mark', 'reader.renew', 'cursor.claim'],
  owns: [
    'delivery.plan',
    'delivery.claim',
    'delivery.write',
    'delivery.replay',
    'delivery.replay_all',
    'endpoint.lock',
    'endpoint.create',
  ],
  // a claim that finds nothing tells nothing
  behind: { 'delivery.claim': 'delivery.write' },
  async run(on) {
    const receiver = await on.bus.open()
    await manned(on)
    const [first, rotated] = receiverPaths['/endpoint']
    const [own] = receiverPaths['/job']
    const [id] = await on.bus.order({
      do: 'open-endpoint',
      webhook: { url: receiver.url('/endpoint'), secret: first },
    })
    const webhook = { url: receiver.url('/job'), secret: own }
    await Promise.all([
      ...on.shuffled(['short', 'doomed', 'stubborn', 'usable']).map((kind) => on.submit(kind)),
      on.submit('flaky', webhook),
      on.submit('staged', webhook),
    ])
    await Promise.all([
      cancelStubborn(on),
      on.bus.order({ do: 'rotate', id: id as string, secret: rotated }),
      on.bus.order({
        do: 'try-endpoint',
        webhook: { url: receiver.url('/elsewhere'), secret: receiverPaths['/elsewhere'][0] },
      }),
    ])
    await replay(on)
    await on.crew.relieve('worker-2')
  },
}

/** What was delivered or refused is sent once more. */
async function replay(on: Case): Promise<void> {
  const all = () => on.ask(sentDeliveries, {})
  const delivered = await eventually(
    async () => {
      const sent = await all()
      return sent.some(({ state }) => state === 'dead') && sent.find(({ state }) => state === 'delivered')
    },
    { ms: waitMs, what: 'one webhook was delivered and one was dead', everyMs: 50 },
  )
  await on.bus.order({ do: 'look-at-deliveries' })
  await on.bus.order({ do: 'replay-delivery', id: delivered.id })
  await on.bus.order({ do: 'replay-dead' })
}
