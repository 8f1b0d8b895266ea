import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentError } from '../errors/errors.ts'
import { type AnyJob, defineJob, type StageContext } from '../job/define.ts'
import type { ItemContext } from '../job/fan-out.ts'

/** What a handler did, told to the prover at once: who ran which attempt, when, and what it is going to return. */
export interface Effect {
  what: 'started' | 'ended'
  jobId: string
  stage: string
  attempt: number
  /** Names this one run of the handler; the output carries it. */
  token: string
  /** By the monotonic clock, which all processes of a machine share. */
  atMs: number
  /** Why its signal fired, if it ended for that. */
  reason?: string
}

/** Where effects go. */
export type Tell = (effect: Effect) => void

/** What every stage of the prover returns. */
export interface Output {
  token: string
  attempt: number
}

/** By the clock that all processes of a machine share. */
export const monotonicMs = () => Number(process.hrtime.bigint() / 1000n) / 1000
let runs = 0

/** What the prover's handlers use of theirs. */
export type Context = Pick<StageContext, 'job' | 'stage' | 'attempt' | 'signal' | 'progress' | 'log'>

/** Runs a handler under the prover's eyes. */
export function seen(tell: Tell, handler: (ctx: Context) => Promise<unknown> | unknown) {
  return async (ctx: Context): Promise<Output> => {
    runs += 1
    const token = `${process.pid}-${runs}`
    const facts = { jobId: ctx.job.id, stage: ctx.stage, attempt: ctx.attempt, token }
    let isOver = false
    const end = (reason?: string) => {
      if (!isOver) tell({ what: 'ended', ...facts, atMs: monotonicMs(), ...(reason && { reason }) })
      isOver = true
    }
    tell({ what: 'started', ...facts, atMs: monotonicMs() })
    // its signal is the promise: from here on, whatever the handler does is the handler's own fault
    ctx.signal.addEventListener('abort', () => end(String((ctx.signal.reason as { reason?: string })?.reason)))
    try {
      await handler(ctx)
      return { token, attempt: ctx.attempt }
    } finally {
      end()
    }
  }
}

/** How long the kinds take. */
export const times = {
  patientMs: 700,
  innocentMs: 900,
  tirelessMs: 400,
  restingMs: 1_500,
  lastingMs: 4_000,
  chattyMs: 250,
  stubbornMs: 350,
  unresponsiveMs: 2_500,
  blockedMs: 1_500,
  blockedEveryMs: 5_000,
  heldMs: 8_000,
  mostMs: 30_000,
  itemMs: 150,
  drawnMs: 15_000,
}

/** The item that fails in the fan-outs of which some fail. */
export const badItem = 1

/** The kinds that a proof runs: each provokes other statements. */
export function proverKinds(tell: Tell): Record<string, AnyJob> {
  const ok = seen(tell, () => {})
  const doomed = seen(tell, () => {
    throw new PermanentError('This kind always fails.')
  })
  const all: AnyJob[] = [
    defineJob('short', { run: ok }),
    defineJob('staged', {
      stages: [
        { name: 'first', run: ok },
        { name: 'second', run: ok },
      ],
    }),
    defineJob('flaky', {
      run: seen(tell, ({ attempt }) => {
        if (attempt === 1) throw new Error('The first attempt fails.')
      }),
    }),
    defineJob('doomed', { run: doomed }),
    defineJob('usable', {
      stages: [
        { name: 'needed', run: ok },
        { name: 'extra', optional: true, run: doomed },
      ],
    }),
    defineJob('chatty', { run: seen(tell, chat) }),
    defineJob('patient', { run: seen(tell, ({ signal }) => sleep(times.patientMs, undefined, { signal })) }),
    // so many lives that two lost to others and one to a fault leave it one
    defineJob('innocent', {
      crashBudget: 4,
      run: seen(tell, ({ signal }) => sleep(times.innocentMs, undefined, { signal })),
    }),
    // waits for a while between its two attempts, so that there is time to make it a suspect
    defineJob('resting', {
      retries: 20,
      backoff: { baseMs: times.restingMs, factor: 1 },
      run: seen(tell, ({ attempt }) => {
        if (attempt === 1) throw new Error('The first attempt fails.')
      }),
    }),
    defineJob('lasting', { run: seen(tell, ({ signal }) => sleep(times.lastingMs, undefined, { signal })) }),
    // goes from attempt to attempt until it is cancelled
    defineJob('tireless', {
      retries: 1_000,
      backoff: { baseMs: 20, factor: 1 },
      run: seen(tell, async ({ signal }) => {
        await sleep(times.tirelessMs, undefined, { signal })
        throw new Error('It is never done.')
      }),
    }),
    // long enough to be at work whenever its worker is stopped; whoever takes it over has it easy
    defineJob('held', {
      run: seen(tell, ({ attempt, signal }) => sleep(attempt === 1 ? times.heldMs : 50, undefined, { signal })),
    }),
    defineJob('stubborn', { run: seen(tell, beStubborn) }),
    defineJob('unresponsive', { run: seen(tell, ignoreSignal) }),
    defineJob('blocking', { run: seen(tell, block) }),
    defineJob('poison', { crashBudget: 2, run: seen(tell, () => process.kill(process.pid, 'SIGKILL')) }),
    defineJob('costly', {
      crashBudget: 2,
      stages: [
        { name: 'needed', run: ok },
        { name: 'extra', optional: true, run: seen(tell, () => process.kill(process.pid, 'SIGKILL')) },
      ],
    }),
    ...fanOuts(tell),
  ]
  return Object.fromEntries(all.map((job) => [job.kind, job]))
}

/** Kinds that fan out: all well, some items failed, one too many, one item alone, items of items, a producer that gives up, and one to be cancelled. */
function fanOuts(tell: Tell): AnyJob[] {
  const ok = seen(tell, () => {})
  const join = async (ctx: Context, _summary: unknown, results: AsyncIterable<unknown>) => {
    for await (const _ of results);
    return ok(ctx)
  }
  const over = (count: number) =>
    async function* () {
      for (let item = 0; item < count; item++) yield item
    }
  async function* torn() {
    yield* over(3)()
    throw new Error('The producer fails after its last item, time and again.')
  }
  const asking = async (ctx: Context & Pick<ItemContext, 'parent'>) => {
    await ctx.parent()
    return ok(ctx)
  }
  const failing = (ctx: Context, item: number) =>
    seen(tell, async ({ signal }) => {
      if (item === badItem) throw new PermanentError('This item always fails.')
      await sleep(times.itemMs, undefined, { signal })
    })(ctx)
  const drawn = seen(tell, ({ signal }) => sleep(times.drawnMs, undefined, { signal }))
  const inner = defineJob('inner', { stages: [{ name: 'all', fanOut: over(2), each: ok, join }] })
  return [
    defineJob('wide', {
      stages: [
        { name: 'all', fanOut: over(6), each: asking, join },
        { name: 'after', run: ok },
      ],
    }),
    defineJob('lone', { stages: [{ name: 'all', fanOut: over(1), each: ok, join }] }),
    defineJob('torn', { stages: [{ name: 'all', retries: 1, fanOut: torn, each: ok, join }] }),
    defineJob('flawed', { stages: [{ name: 'all', tolerate: { share: 0.5 }, fanOut: over(4), each: failing, join }] }),
    defineJob('spoilt', { stages: [{ name: 'all', fanOut: over(20), each: failing, join }] }),
    defineJob('drawn', { stages: [{ name: 'all', fanOut: over(4), each: drawn, join }] }),
    inner,
    defineJob('nest', { stages: [{ name: 'all', fanOut: over(2), each: inner, join }] }),
  ]
}

/** Reports and writes lines for a while. */
export async function chat({ progress, log, signal }: Context): Promise<void> {
  for (let done = 1; done <= 5 && !signal.aborted; done++) {
    progress(done, 5, `part ${done}`)
    log('a part is done', { done })
    await sleep(times.chattyMs / 5)
  }
}

/** Runs on for much longer than its grace after it was told to stop. */
async function ignoreSignal({ signal }: Context): Promise<void> {
  const until = performance.now() + times.mostMs
  while (!signal.aborted && performance.now() < until) await sleep(10)
  await sleep(times.unresponsiveMs)
}

let blockedAtMs = Number.NEGATIVE_INFINITY

/** Blocks the event loop, once in a process for a while and never again for the same job: so there is something to be given back. */
function block({ attempt }: Context): void {
  if (attempt > 1 || performance.now() - blockedAtMs < times.blockedEveryMs) return
  blockedAtMs = performance.now()
  while (performance.now() - blockedAtMs < times.blockedMs);
}

/** Takes no notice of its signal: what it reports after a cancel has to be refused. */
async function beStubborn({ progress, log, signal }: Context): Promise<void> {
  const until = performance.now() + times.mostMs
  while (!signal.aborted && performance.now() < until) await sleep(10)
  // told to stop for another reason it gives the job back, so that there is something left to cancel
  if ((signal.reason as { reason?: string } | undefined)?.reason !== 'cancelled') throw signal.reason
  progress(1)
  log('still at it')
  await sleep(times.stubbornMs)
}
