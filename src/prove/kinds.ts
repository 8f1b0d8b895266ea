import { setTimeout as sleep } from 'node:timers/promises'
import { PermanentError } from '../errors/errors.ts'
import { type AnyJob, defineJob } from '../job/define.ts'
import { fanOutKinds } from './fan-out-kinds.ts'
import { type Context, observed, type Report } from './observed.ts'

/** How long the kinds take. */
const times = {
  patientMs: 700,
  innocentMs: 900,
  tirelessMs: 400,
  restingMs: 1_500,
  lastingMs: 4_000,
  chattyMs: 250,
  snoozeMs: 200,
  waitMs: 120_000,
  stubbornMs: 350,
  unresponsiveMs: 2_500,
  blockedMs: 1_500,
  blockedEveryMs: 5_000,
  heldMs: 8_000,
  lengthyMs: 1_500,
  replaceableMs: 2_500,
  mostMs: 30_000,
}

/** Kinds whose handlers run longer than any bound. While their worker keeps its lease, they are running and not stalled. */
export const outlastingKinds: readonly string[] = ['lasting']

/** The kinds that a proof runs. Each provokes different statements. */
export function proverKinds(report: Report): Record<string, AnyJob> {
  const all = [...simpleKinds(report), ...slowKinds(report), ...misbehavingKinds(report), ...fanOutKinds(report)]
  return Object.fromEntries(all.map((job) => [job.kind, job]))
}

/** Kinds that end at once, in each of the ways in which a job can end. */
function simpleKinds(report: Report): AnyJob[] {
  const ok = observed(report, () => {})
  const doomed = observed(report, () => {
    throw new PermanentError('This kind always fails.')
  })
  return [
    defineJob('short', { run: ok }),
    defineJob('staged', {
      stages: [
        { name: 'first', run: ok },
        { name: 'second', run: ok },
      ],
    }),
    defineJob('flaky', { run: observed(report, failFirst) }),
    defineJob('doomed', { run: doomed }),
    defineJob('usable', {
      stages: [
        { name: 'needed', run: ok },
        { name: 'extra', optional: true, run: doomed },
      ],
    }),
    defineJob('chatty', { run: observed(report, chat) }),
    defineJob('snoozing', { retries: 0, run: observed(report, snoozeFirst) }),
    defineJob('unique', { run: ok }),
    defineJob('approval', {
      stages: [
        { name: 'draft', run: ok },
        { name: 'approve', wait: { signal: 'approved', timeoutMs: times.waitMs } },
        { name: 'publish', run: ok },
      ],
    }),
    // waits in a queue of its own, which a scenario pauses
    defineJob('shelved', { queue: 'shelf', run: ok }),
    // waits for a while between its two attempts, so that there is time to make it a suspect
    defineJob('resting', {
      retries: 20,
      backoff: { baseMs: times.restingMs, factor: 1 },
      run: observed(report, failFirst),
    }),
  ]
}

/** Kinds that run for a while, so that faults strike while they do. */
function slowKinds(report: Report): AnyJob[] {
  const sleeping = (ms: number) => observed(report, ({ signal }) => sleep(ms, undefined, { signal }))
  return [
    defineJob('patient', { run: sleeping(times.patientMs) }),
    // losing two workers to poison and one to a fault leaves it one life
    defineJob('innocent', { crashBudget: 4, run: sleeping(times.innocentMs) }),
    defineJob('lasting', { run: sleeping(times.lastingMs) }),
    // the jobs of schedules; the one that it declares has no slot while a proof runs
    defineJob('scheduled', { schedule: { name: 'declared', cron: '@yearly' }, run: observed(report, () => {}) }),
    defineJob('lengthy', { run: sleeping(times.lengthyMs) }),
    defineJob('replaceable', { run: sleeping(times.replaceableMs) }),
    // goes from attempt to attempt until it is cancelled
    defineJob('tireless', {
      retries: 1_000,
      backoff: { baseMs: 20, factor: 1 },
      run: observed(report, async ({ signal }) => {
        await sleep(times.tirelessMs, undefined, { signal })
        throw new Error('It is never done.')
      }),
    }),
    // its first attempt is certain to be running when its worker is stopped; the next one is quick
    defineJob('held', {
      run: observed(report, ({ attempt, signal }) => sleep(attempt === 1 ? times.heldMs : 50, undefined, { signal })),
    }),
  ]
}

/** Kinds that ignore their signal, block their process or kill it. */
function misbehavingKinds(report: Report): AnyJob[] {
  const kill = observed(report, () => process.kill(process.pid, 'SIGKILL'))
  return [
    defineJob('stubborn', { run: observed(report, reportAfterCancel) }),
    defineJob('unresponsive', { run: observed(report, ignoreSignal) }),
    defineJob('blocking', { run: observed(report, block) }),
    defineJob('poison', { crashBudget: 2, run: kill }),
    defineJob('costly', {
      crashBudget: 2,
      stages: [
        { name: 'needed', run: observed(report, () => {}) },
        { name: 'extra', optional: true, run: kill },
      ],
    }),
  ]
}

/** Fails the first attempt of a job. */
export function failFirst({ attempt }: Context): void {
  if (attempt === 1) throw new Error('The first attempt fails.')
}

/** Gives the first attempt of a job back for a while. */
export function snoozeFirst({ attempt, snooze }: Context): void {
  if (attempt === 1) snooze(times.snoozeMs)
}

/** Reports progress and writes log lines for a while. */
export async function chat({ progress, log, signal }: Context): Promise<void> {
  for (let done = 1; done <= 5 && !signal.aborted; done++) {
    progress(done, 5, `part ${done}`)
    log('a part is done', { done })
    await sleep(times.chattyMs / 5)
  }
}

/** Runs on for much longer than its grace after it was aborted. */
async function ignoreSignal({ signal }: Context): Promise<void> {
  await untilAborted(signal)
  await sleep(times.unresponsiveMs)
}

let blockedAtMs = Number.NEGATIVE_INFINITY

/** Blocks the event loop: once per process for a while, and only a job's first attempt, so that jobs wait behind it to be given back. */
function block({ attempt }: Context): void {
  if (attempt > 1 || performance.now() - blockedAtMs < times.blockedEveryMs) return
  blockedAtMs = performance.now()
  while (performance.now() - blockedAtMs < times.blockedMs);
}

/** Ignores that it was cancelled: what it reports after that must be refused. */
async function reportAfterCancel({ progress, log, signal }: Context): Promise<void> {
  await untilAborted(signal)
  // aborted for another reason it gives the job back, so that there is something left to cancel
  if ((signal.reason as { reason?: string } | undefined)?.reason !== 'cancelled') throw signal.reason
  progress(1)
  log('still at it')
  await sleep(times.stubbornMs)
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  const untilMs = performance.now() + times.mostMs
  while (!signal.aborted && performance.now() < untilMs) await sleep(10)
}
