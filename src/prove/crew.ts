import type { GivenSettings } from '../config/config.ts'
import { pause } from '../service/service.ts'
import { eventually, Overdue } from './deadline.ts'
import type { Target } from './dial.ts'
import type { Effect } from './kinds.ts'
import type { Member, Pool } from './member.ts'
import type { Answer, Order, Role } from './orders.ts'
import { openProxy, type Way } from './proxy.ts'
import type { Handling } from './reading.ts'
import { cellSettings, submitterSettings } from './settings.ts'
import type { Traps } from './trap.ts'

/** A process at work in a cell, with its own way to the database. */
export interface Post {
  readonly seat: string
  readonly role: Role
  readonly member: Member
  readonly proxy: Way
  isUp: boolean
}

/** The processes of a cell. Whoever dies is replaced, as a deployment would do. */
export interface Crew {
  /** Fills a seat, and resolves once its process is up. */
  fill(seat: string, role: Role): Promise<void>
  /** The process that holds a seat and is up. */
  at(seat: string): Post | undefined
  posts(): Post[]
  /** Stops the process of a seat in an orderly way and starts another in its place. */
  relieve(seat: string): Promise<void>
  /** Has the submitter do something, with another try after a broken wire or a death, as a careful client would. */
  order(order: Order): Promise<Answer>
  readonly effects: Effect[]
  /** The executions that their owner was asked to mark failed. */
  readonly marks: string[]
  /** What the handlers of events did. */
  readonly handlings: Handling[]
  /** Which process sent which event by a webhook, in order. */
  readonly posted: { pid: number; event: string }[]
  /** The processes that were killed. */
  readonly killed: Set<number>
  /** What no fault excuses: processes that ended by themselves, or did not stop. */
  readonly troubles: string[]
  stop(): Promise<void>
}

/** What a crew needs. */
export interface CrewOptions {
  pool: Pool
  traps: Traps
  target: () => Target
  /** The URL of the cell's database through a port of this machine. */
  urlThrough: (port: number) => string
  /** A module with other kinds than the prover's own. */
  module: string | undefined
}

const startMs = 20_000
const stopMs = 10_000

/** Makes a crew without anybody in it. */
export function makeCrew(options: CrewOptions): Crew {
  const { pool, traps } = options
  const seats = new Map<string, Post>()
  const effects: Effect[] = []
  const marks: string[] = []
  const handlings: Handling[] = []
  const posted: { pid: number; event: string }[] = []
  const killed = new Set<number>()
  const troubles: string[] = []
  const cleared = new Set<Post>()
  const fillings = new Set<Promise<void>>()
  let isClosing = false

  function fill(seat: string, role: Role): Promise<void> {
    const filling = fillUntilUp(seat, role).finally(() => fillings.delete(filling))
    fillings.add(filling)
    return filling
  }

  async function fillUntilUp(seat: string, role: Role): Promise<void> {
    const untilMs = performance.now() + startMs
    while (!isClosing) {
      const post = await man(seat, role)
      if (isClosing) return clear(post)
      const answer = await post.member.ask(startOrder(role, options.urlThrough(post.proxy.port), options.module))
      if (answer.isDone) {
        post.isUp = true
        return
      }
      await clear(post)
      if (!answer.isWire && !isClosing) troubles.push(`${seat} could not start: ${answer.message}`)
      if (performance.now() > untilMs) throw new Overdue(`${seat} was up (last: ${answer.message})`, startMs)
      await pause(50)
    }
  }

  async function man(seat: string, role: Role): Promise<Post> {
    const member = await pool.take()
    member.onEffect = (effect) => effects.push(effect)
    member.onMark = (execution) => marks.push(execution)
    member.onHandling = (handling) => handlings.push(handling)
    member.onPosted = (event) => posted.push({ pid: member.pid, event })
    const post = { seat, role, member, isUp: false } as { -readonly [K in keyof Post]: Post[K] }
    post.proxy = await openProxy(options.target, traps.watcherOf(post))
    seats.set(seat, post)
    void member.exited.then(({ code, signal }) => {
      const wasUp = post.isUp
      post.isUp = false
      void post.proxy.close()
      if (signal === 'SIGKILL') killed.add(member.pid)
      if (isClosing || cleared.has(post)) return
      if (signal !== 'SIGKILL')
        troubles.push(`${seat} ended by itself (${signal ?? `code ${code}`}): ${member.words()}`)
      if (wasUp) fill(seat, role).catch((error: Error) => troubles.push(error.message))
    })
    return post
  }

  /** Takes a process away for good. */
  async function clear(post: Post): Promise<void> {
    cleared.add(post)
    post.isUp = false
    post.member.kill('SIGKILL')
    await post.member.exited
  }

  async function dismiss(post: Post): Promise<void> {
    post.isUp = false
    const answer = await post.member.ask({ do: 'stop' }, stopMs)
    if (answer.isDone) cleared.add(post)
    if (!answer.isDone && !answer.isWire) troubles.push(`${post.seat} did not stop: ${answer.message}`)
    if (!answer.isDone) await clear(post)
    await post.proxy.close()
    if (answer.isDone) pool.giveBack(post.member)
  }

  async function order(order: Order): Promise<Answer> {
    return eventually(
      async () => {
        const submitter = seats.get('submitter')
        if (!submitter?.isUp) return false
        const answer = await submitter.member.ask(order)
        return answer.isDone || !answer.isWire ? answer : false
      },
      { ms: startMs, what: `the submitter had done ${JSON.stringify(order)}` },
    )
  }

  return {
    fill,
    at: (seat) => {
      const post = seats.get(seat)
      return post?.isUp ? post : undefined
    },
    posts: () => [...seats.values()],
    async relieve(seat) {
      const post = seats.get(seat)
      if (!post?.isUp) return
      await dismiss(post)
      await fill(seat, post.role)
    },
    order,
    effects,
    marks,
    handlings,
    posted,
    killed,
    troubles,
    async stop() {
      isClosing = true
      await Promise.all([...seats.values()].map((post) => (post.isUp ? dismiss(post) : clear(post))))
      // one that was on its way into its seat would go on working on a database that the next cell is lent
      await Promise.allSettled(fillings)
      await Promise.all([...seats.values()].filter((post) => !cleared.has(post)).map(clear))
      await Promise.all([...seats.values()].map((post) => post.proxy.close()))
    },
  }
}

function startOrder(role: Role, url: string, module: string | undefined): Order {
  const settings: GivenSettings = role === 'submitter' ? submitterSettings : cellSettings
  return { do: 'start', role, url, settings, module }
}
