// A process of a proof: carries out the prover's orders, reports what its handlers do, and ends with the prover.
import { subscribe } from 'node:diagnostics_channel'
import type { Worker } from 'node:worker_threads'
import type { Owner } from '../barrier/owner.ts'
import { connect } from '../engine/connect.ts'
import type { Holdfast } from '../engine/engine.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'
import { isConnectionError } from '../postgres/connection.ts'
import { migrate } from '../schema/migrate.ts'
import { carryOutInBulk } from './bulk-orders.ts'
import { carryOutOnBus } from './bus-orders.ts'
import { proverKinds } from './kinds.ts'
import { carryOutOnLimits } from './limit-orders.ts'
import type { Report } from './observed.ts'
import type { Answer, BarrierOrder, MemberMessage, Order } from './orders.ts'
import { ownerName, proverOwner } from './owner.ts'
import { readForProver } from './reader.ts'
import { remoteKinds } from './remote-kinds.ts'
import { RemoteWorker } from './remote-worker.ts'
import { carryOutOnSchedule } from './schedule-orders.ts'

/** The supervisor that all processes of a proof name, so that one of them can reclaim the jobs of another. */
const supervisor = 'holdfast-prove'

const send = (message: MemberMessage) => process.send?.(message)
const report: Report = (effect) => send({ effect })
let kinds: Record<string, AnyJob> = {}
const threads = new Set<Worker>()
let hf: Holdfast | undefined
let remoteWorker: RemoteWorker | undefined

process.on('message', (message: { id: number; order: Order }) => {
  void carryOut(message.order)
    .then((values): Answer => ({ isDone: true, values }), failureOf)
    .then((answer) => send({ id: message.id, answer }))
})
process.on('disconnect', () => process.exit())
process.on('worker', (thread) => {
  threads.add(thread)
  thread.once('exit', () => threads.delete(thread))
})
// Ctrl-C reaches the whole process group, but the prover decides when its processes end
process.on('SIGINT', () => {})
// a webhook does not say which process sent it, so each process reports its own
subscribe('undici:client:sendHeaders', (message) => {
  const [, posted] = /^webhook-id: (\S+)/im.exec((message as { headers: string }).headers) ?? []
  if (posted) send({ posted })
})
send({ isReady: true })

async function carryOut(order: Order): Promise<string[]> {
  switch (order.do) {
    case 'start':
      return start(order)
    case 'stop':
      await remoteWorker?.stop()
      remoteWorker = undefined
      await hf?.close()
      hf = undefined
      return []
    case 'end-heartbeat':
      await Promise.all([...threads].map((thread) => thread.terminate()))
      return []
    case 'submit':
      return submit(order)
    case 'submit-many':
      return submitMany(order)
    case 'submit-unique':
      return submitUnique(order)
    case 'signal':
      await running().signal(order.id, order.name)
      return []
    case 'cancel':
      await running().cancel(order.id, { reason: 'part of the scenario' })
      return []
    case 'redo':
      await running().redo(order.id)
      return []
    case 'await':
      await running().handle(order.id).result({ timeout: 20_000 })
      return []
    case 'read':
      return read(order.id)
    case 'pause':
      await running().pauseQueue('elsewhere')
      await running().resumeQueue('elsewhere')
      return []
    case 'bulk':
    case 'stop-bulk':
    case 'hold-queue':
    case 'free-queue':
      return carryOutInBulk(running(), order)
    case 'limit':
    case 'limit-remote':
      return carryOutOnLimits(running(), order.do)
    case 'reclaim':
      await running().reclaim({ supervisor, pid: order.pid })
      return []
    case 'open':
      return open(order)
    case 'arrive':
      return Promise.all(order.parts.map((part) => running().barrier.arrive(order.id, part)))
    case 'schedule':
      return carryOutOnSchedule(running(), order, kind(order.kind ?? 'scheduled'))
    case 'abort':
      return [await running().barrier.abort(order.id)]
    case 'read-barrier':
      await running().barrier.get(order.id)
      return []
    default:
      return carryOutOnBus(running(), order)
  }
}

async function start({ role, url, settings, module }: Extract<Order, { do: 'start' }>): Promise<string[]> {
  kinds = module ? (await import(module)).proverKinds(report) : proverKinds(report)
  if (role === 'migrator') {
    await migrate(url)
    return []
  }
  // a process that only opens barriers needs no owners
  const owners: Record<string, Owner> =
    role === 'worker' ? { [ownerName]: proverOwner((marked) => send({ marked })) } : {}
  hf = await connect({ ...settings, url, jobs: Object.values(kinds), supervisor, owners })
  if (role === 'worker') await hf.work()
  if (role === 'remote') {
    remoteWorker = new RemoteWorker(hf, report)
    remoteWorker.start()
  }
  if (role === 'reader') await readForProver(hf, (handling) => send({ handling }))
  return []
}

async function submit({ kind: name, key, webhook }: Extract<Order, { do: 'submit' }>): Promise<string[]> {
  const options = { key, ...(webhook && { webhook: { ...webhook, types: 'job.*' } }) }
  return [(await running().submit(kind(name), {} as never, options)).id]
}

async function submitUnique({ kind: name, unique, onConflict, delayMs }: Extract<Order, { do: 'submit-unique' }>) {
  const options = { unique, onConflict, ...(delayMs !== undefined && { delayMs }) }
  const { id, outcome } = await running().submit(kind(name), {} as never, options)
  return [id, outcome]
}

async function submitMany({ kind: name, keys }: Extract<Order, { do: 'submit-many' }>): Promise<string[]> {
  const handles = await running().submitMany(
    kind(name),
    keys.map((key) => ({ input: {} as never, key })),
  )
  return handles.map(({ id }) => id)
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

async function read(id: string): Promise<string[]> {
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
  if (!hf) throw new HoldfastError('not_running', 'This process has not been connected to a database yet.')
  return hf
}

function kind(name: string): AnyJob {
  return kinds[name] ?? (remoteKinds(report)[name] as AnyJob)
}

function failureOf(error: unknown): Answer {
  const code = error instanceof HoldfastError ? error.code : 'unexpected'
  const state = error instanceof HoldfastError ? (error.details?.state as string | undefined) : undefined
  return {
    isDone: false,
    code,
    message: messageOf(error),
    isConnectionError: isConnectionError(error),
    ...(state && { state }),
  }
}
