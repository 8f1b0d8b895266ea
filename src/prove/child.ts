// A process of a proof: does what the prover orders, tells what handlers did, and ends with the prover.
import { subscribe } from 'node:diagnostics_channel'
import type { Worker } from 'node:worker_threads'
import type { Owner } from '../barrier/owner.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { isConnectionError } from '../store/connection.ts'
import { migrate } from '../store/migrate.ts'
import { afarKinds, workFromAfar } from './afar.ts'
import { carryOutOnBus } from './bus-orders.ts'
import { proverKinds } from './kinds.ts'
import type { Answer, BarrierOrder, News, Order } from './orders.ts'
import { ownerName, proverOwner } from './owner.ts'
import { readForProver } from './reading.ts'

/** What every process of a proof calls itself, for whoever supervises it. */
const supervisor = 'holdfast-prove'

const tell = (news: News) => process.send?.(news)
let kinds: Record<string, AnyJob> = {}
const threads = new Set<Worker>()
let hf: Holdfast | undefined
let afar: { stop(): Promise<void> } | undefined

process.on('message', (message: { id: number; order: Order }) => {
  void carryOut(message.order)
    .then((said): Answer => ({ isDone: true, said }), explain)
    .then((answer) => tell({ id: message.id, answer }))
})
process.on('disconnect', () => process.exit())
process.on('worker', (thread) => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})
// Ctrl-C reaches the whole group; the prover decides what ends when
process.on('SIGINT', () => {})
// who sends a webhook is not written on it
subscribe('undici:client:sendHeaders', (message) => {
  const [, posted] = /^webhook-id: (\S+)/im.exec((message as { headers: string }).headers) ?? []
  if (posted) tell({ posted })
})
tell({ isReady: true })

async function carryOut(order: Order): Promise<string[]> {
  switch (order.do) {
    case 'start':
      return start(order)
    case 'stop':
      await afar?.stop()
      afar = undefined
      await hf?.close()
      hf = undefined
      return []
    case 'end-heartbeat':
      await Promise.all([...threads].map((thread) => thread.terminate()))
      return []
    case 'submit':
      return submit(order)
    case 'submit-many': {
      const handles = await running().submitMany(
        kind(order.kind),
        order.keys.map((key) => ({ input: {} as never, key })),
      )
      return handles.map(({ id }) => id)
    }
    case 'cancel':
      await running().cancel(order.id, { reason: 'the scenario wants it' })
      return []
    case 'redo':
      await running().redo(order.id)
      return []
    case 'await':
      await running().handle(order.id).result({ timeout: 20_000 })
      return []
    case 'look':
      return look(order.id)
    case 'pause':
      await running().pauseQueue('elsewhere')
      await running().resumeQueue('elsewhere')
      return []
    case 'reclaim':
      await running().reclaim({ supervisor, pid: order.pid })
      return []
    case 'open':
      return open(order)
    case 'arrive':
      return Promise.all(order.parts.map((part) => running().barrier.arrive(order.id, part)))
    case 'abort':
      return [await running().barrier.abort(order.id)]
    case 'look-at-barrier':
      await running().barrier.get(order.id)
      return []
    default:
      return carryOutOnBus(running(), order)
  }
}

async function start({ role, url, settings, module }: Extract<Order, { do: 'start' }>): Promise<string[]> {
  kinds = module ? (await import(module)).proverKinds(told) : proverKinds(told)
  if (role === 'migrator') {
    await migrate(url)
    return []
  }
  // a process that only opens barriers needs no owners
  const owners: Record<string, Owner> =
    role === 'worker' ? { [ownerName]: proverOwner((marked) => tell({ marked })) } : {}
  hf = await connect({ ...settings, url, jobs: Object.values(kinds), supervisor, owners })
  if (role === 'worker') await hf.work()
  if (role === 'remote') afar = workFromAfar(hf, told)
  if (role === 'reader') await readForProver(hf, (handling) => tell({ handling }))
  return []
}

const told: Parameters<typeof proverKinds>[0] = (effect) => tell({ effect })

async function submit({ kind: name, key, webhook }: Extract<Order, { do: 'submit' }>): Promise<string[]> {
  const how = { key, ...(webhook && { webhook: { ...webhook, types: 'job.*' } }) }
  return [(await running().submit(kind(name), {} as never, how)).id]
}

async function open({ id, parts, expiresMs, owner }: BarrierOrder): Promise<string[]> {
  const { job } = await running().barrier.open({
    id,
    tenant: 'default',
    parts,
    ...(expiresMs !== undefined && { expires: expiresMs }),
    continuation: { job: kind('short'), input: { barrier: id } as never },
    ...(owner && { owner: { name: owner, execution: id } }),
  })
  return [job]
}

async function look(id: string): Promise<string[]> {
  await running().get(id)
  await running().list({ limit: 10 })
  await running().timeline(id)
  await running().fanOuts(id)
  await running().items(id)
  await running().stragglers(id)
  await running().kinds()
  await running().kind('short')
  return []
}

function running(): Holdfast {
  if (!hf) throw new HoldfastError('not_running', 'This process of the proof was given no database yet.')
  return hf
}

function kind(name: string): AnyJob {
  return kinds[name] ?? (afarKinds(told)[name] as AnyJob)
}

function explain(error: unknown): Answer {
  const code = error instanceof HoldfastError ? error.code : 'unexpected'
  const state = error instanceof HoldfastError ? (error.details?.state as string | undefined) : undefined
  return {
    isDone: false,
    code,
    message: messageOf(error),
    isWire: isConnectionError(error),
    ...(state && { state }),
  }
}
