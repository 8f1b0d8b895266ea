// A program that works or reaps, for tests that kill, freeze and wake it. It writes one JSON line per thing that happens
// and takes one JSON line per order. Its settings come by environment, as those of any process do.
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { connect, defineJob } from 'holdfast'

const { role, kinds, read } = JSON.parse(process.argv[2])
const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)
const told = ({ job, attempt, stage }) => ({ id: job.id, attempt, stage })

// what the test has let go, by the input's `name`
const opened = new Map()
function gateOf(name) {
  if (!opened.has(name)) {
    let open
    const promise = new Promise((resolve) => {
      open = resolve
    })
    opened.set(name, { promise, open })
  }
  return opened.get(name)
}

/** Waits until the test lets it go, or until its signal fires. */
async function hold(ctx) {
  tell({ started: told(ctx) })
  const aborted = new Promise((_, reject) => {
    ctx.signal.addEventListener('abort', () => {
      tell({ aborted: { ...told(ctx), reason: ctx.signal.reason.reason } })
      reject(ctx.signal.reason)
    })
  })
  await Promise.race([gateOf(ctx.input?.name ?? 'all').promise, aborted])
  return { by: process.pid, attempt: ctx.attempt, outputs: ctx.outputs ?? null }
}

/** Takes no notice of its signal, and later writes whatever a handler can write. */
async function stubborn(ctx) {
  tell({ started: told(ctx) })
  await Promise.race([
    gateOf(ctx.input?.name ?? 'all').promise,
    new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)),
  ])
  if (ctx.signal.aborted) {
    tell({ aborted: { ...told(ctx), reason: ctx.signal.reason.reason } })
    await gateOf('late').promise
  }
  ctx.progress(7, 10)
  ctx.log('a line by whoever runs this')
  return { by: process.pid }
}

/** Blocks the whole process until a file appears. */
function block(ctx) {
  tell({ started: told(ctx) })
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (!existsSync(ctx.input.file)) Atomics.wait(cell, 0, 0, 20)
  return { by: process.pid }
}

async function flaky(ctx) {
  tell({ started: told(ctx) })
  if (ctx.attempt === 1) throw new Error('It broke.')
  return { by: process.pid }
}

/** Ends its process as the harshest of crashes does, once the test lets it. */
async function killer(ctx) {
  tell({ started: told(ctx) })
  await gateOf('kill').promise
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}

/** Ends its process after a moment, each time. */
async function poison(ctx) {
  await new Promise((resolve) => setTimeout(resolve, ctx.input.afterMs))
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}

/** Takes its time, and harms nobody. */
async function steady(ctx) {
  await new Promise((resolve) => setTimeout(resolve, ctx.input.takesMs))
}

/** Gives the items one by one, and waits for the test before the one that the input names. */
async function* produce(ctx) {
  tell({ started: told(ctx) })
  for (let item = 0; item < ctx.input.items; item++) {
    if (item === ctx.input.pauseAt) {
      tell({ paused: item })
      await gateOf('produce').promise
    }
    yield item
  }
}

async function part(ctx, item) {
  tell({ part: { item, ...told(ctx) } })
  await gateOf('parts').promise
  if (item === 0 && ctx.attempt === 1) await gateOf('first').promise
  return item
}

const hour = 3_600_000
const fanning = {
  name: 'all',
  fanOut: produce,
  each: { timeoutMs: hour, run: part },
  join: (_ctx, summary) => summary,
}
const all = {
  hold: defineJob('hold', { timeoutMs: hour, retries: 0, run: hold }),
  staged: defineJob('staged', {
    stages: [
      { name: 'one', run: (ctx) => hold({ ...ctx, input: { name: 'one' } }) },
      { name: 'two', run: (ctx) => hold(ctx) },
    ],
  }),
  stubborn: defineJob('stubborn', { timeoutMs: hour, run: stubborn }),
  block: defineJob('block', { timeoutMs: 200, run: block }),
  flaky: defineJob('flaky', { retries: 1, backoff: { baseMs: 1_500, factor: 1 }, run: flaky }),
  fan: defineJob('fan', { crashBudget: 20, stages: [fanning] }),
  killer: defineJob('killer', { timeoutMs: hour, run: killer }),
  poison: defineJob('poison', { run: poison }),
  steady: defineJob('steady', { run: steady }),
  refined: defineJob('refined', {
    crashBudget: 1,
    stages: [
      { name: 'draft', run: () => 'a draft' },
      { name: 'refine', optional: true, timeoutMs: hour, run: killer },
    ],
  }),
}

/** Handles an event as its tenant says: the test waits for it, or it breaks, or it takes its process down. */
async function handle(event) {
  tell({ event: { seq: event.seq, type: event.type, job: event.jobId } })
  if (event.tenant === 'slow') await gateOf('event').promise
  if (event.tenant === 'poison') throw new Error('This event cannot be handled.')
  if (event.tenant === 'killer') process.kill(process.pid, 'SIGKILL')
  tell({ handled: event.seq })
}

const log = Object.fromEntries(
  ['debug', 'info', 'warn', 'error'].map((level) => [
    level,
    (facts, message) => level !== 'debug' && tell({ log: message, level, ...facts, err: facts.err?.message }),
  ]),
)

const hf = await connect({
  jobs: (kinds ?? Object.keys(all)).map((kind) => all[kind]),
  supervisor: process.env.MEMBER_SUPERVISOR,
  log,
})
let running
if (role === 'work') running = await hf.work()
if (role === 'reap') running = await hf.reap()
if (role === 'read') await hf.events.subscribe(read.group, read.options ?? {}, handle)
if (role === 'deliver') running = await hf.deliver()
tell({ ready: { session: running?.sessionId?.() ?? null } })

async function obey({ open, submit, stop, ask }) {
  if (open) gateOf(open).open()
  if (ask === 'metrics') tell({ metrics: await hf.metrics() })
  if (ask === 'term') tell({ term: running.term() })
  if (submit) tell({ submitted: (await hf.submit(all[submit.kind], submit.input)).id })
  if (stop) {
    tell({ stopping: true })
    await hf.close()
    tell({ stopped: true })
    process.exit(0)
  }
}
createInterface({ input: process.stdin }).on('line', (line) => void obey(JSON.parse(line)))
