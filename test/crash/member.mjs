// A process that works, reaps, reads or delivers, for tests that freeze, kill and stop it. It reports everything that happens as a message,
// and takes orders as messages. Its settings come from the environment.
import { existsSync } from 'node:fs'
import { connect, defineJob } from 'holdfast'

const { role, kinds, read } = JSON.parse(process.argv[2])
const tell = (line) => process.connected && process.send(line)
const factsOf = ({ job, attempt, stage }) => ({ id: job.id, attempt, stage })

// handlers wait at gates, by the `name` of their input, until the test opens them
const gates = new Map()
function gateOf(name) {
  if (!gates.has(name)) {
    let open
    const promise = new Promise((resolve) => {
      open = resolve
    })
    gates.set(name, { promise, open })
  }
  return gates.get(name)
}

/** Waits until the test opens its gate, or until it is aborted. */
async function hold(ctx) {
  tell({ started: factsOf(ctx) })
  const aborted = new Promise((_, reject) => {
    ctx.signal.addEventListener('abort', () => {
      tell({ aborted: { ...factsOf(ctx), reason: ctx.signal.reason.reason } })
      reject(ctx.signal.reason)
    })
  })
  await Promise.race([gateOf(ctx.input?.name ?? 'all').promise, aborted])
  return { by: process.pid, attempt: ctx.attempt, outputs: ctx.outputs ?? null }
}

/** Ignores that it was aborted, and later writes everything that a handler can write. */
async function stubborn(ctx) {
  tell({ started: factsOf(ctx) })
  await Promise.race([
    gateOf(ctx.input?.name ?? 'all').promise,
    new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)),
  ])
  if (ctx.signal.aborted) {
    tell({ aborted: { ...factsOf(ctx), reason: ctx.signal.reason.reason } })
    await gateOf('late').promise
  }
  ctx.progress(7, 10)
  ctx.log('a late line')
  return { by: process.pid }
}

/** Blocks the event loop for so many milliseconds. If negative, it waits for the test instead. */
function blockFor(ctx) {
  tell({ started: factsOf(ctx) })
  if (ctx.input < 0) return gateOf('all').promise
  const untilMs = performance.now() + ctx.input
  while (performance.now() < untilMs);
  return { by: process.pid }
}

/** Blocks the event loop until a file appears. */
function block(ctx) {
  tell({ started: factsOf(ctx) })
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (!existsSync(ctx.input.file)) Atomics.wait(cell, 0, 0, 20)
  return { by: process.pid }
}

async function flaky(ctx) {
  tell({ started: factsOf(ctx) })
  if (ctx.attempt === 1) throw new Error('It broke.')
  return { by: process.pid }
}

/** Gives its first attempt back for a while. */
async function snoozy(ctx) {
  tell({ started: factsOf(ctx) })
  if (ctx.attempt === 1) ctx.snooze(1_500)
  return { by: process.pid }
}

/** Kills its process once the test opens the gate. */
async function killer(ctx) {
  tell({ started: factsOf(ctx) })
  await gateOf('kill').promise
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}

/** Kills its process after a moment, at every attempt. */
async function poison(ctx) {
  await new Promise((resolve) => setTimeout(resolve, ctx.input.afterMs))
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}

/** Takes its time, and succeeds. */
async function steady(ctx) {
  await new Promise((resolve) => setTimeout(resolve, ctx.input.takesMs))
}

/** Yields the items one by one, and waits for the test before the one that the input names. */
async function* produce(ctx) {
  tell({ started: factsOf(ctx) })
  for (let item = 0; item < ctx.input.items; item++) {
    if (item === ctx.input.pauseAt) {
      tell({ paused: item })
      await gateOf('produce').promise
    }
    yield item
  }
}

async function part(ctx, item) {
  tell({ part: { item, ...factsOf(ctx) } })
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
  single: defineJob('single', { timeoutMs: hour, limit: { concurrency: 1 }, run: hold }),
  staged: defineJob('staged', {
    stages: [
      { name: 'one', run: (ctx) => hold({ ...ctx, input: { name: 'one' } }) },
      { name: 'two', run: (ctx) => hold(ctx) },
    ],
  }),
  stubborn: defineJob('stubborn', { timeoutMs: hour, run: stubborn }),
  block: defineJob('block', { timeoutMs: 200, run: block }),
  blocking: defineJob('blocking', { run: blockFor }),
  flaky: defineJob('flaky', { retries: 1, backoff: { baseMs: 1_500, factor: 1 }, run: flaky }),
  snoozy: defineJob('snoozy', { retries: 0, run: snoozy }),
  approval: defineJob('approval', {
    stages: [
      { name: 'draft', run: () => 'a draft' },
      { name: 'approve', wait: { signal: 'approved', timeoutMs: hour } },
      { name: 'publish', run: hold },
    ],
  }),
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

/** Handles an event depending on its tenant: waits for the test, fails, or kills its process. */
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
void running?.ended?.then((error) => error && tell({ failed: error.code, message: error.message }))

/** Submits jobs with one unique key, two at a time, each in place of the one before, until it is killed. */
async function storm({ kind, key }) {
  const how = { unique: { key }, onConflict: 'replace' }
  const submitting = async () => tell({ submitted: (await hf.submit(all[kind], { takesMs: 0 }, how)).id })
  for (;;) await Promise.all([submitting(), submitting()])
}

async function carryOut({ open, submit, stop: isStop, ask, replace }) {
  if (replace) await storm(replace)
  if (open) gateOf(open).open()
  if (ask === 'metrics') tell({ metrics: await hf.metrics() })
  if (ask === 'term') tell({ term: running.term() })
  if (submit) tell({ submitted: (await hf.submit(all[submit.kind], submit.input)).id })
  if (isStop) await stop()
}

async function stop() {
  tell({ stopping: true })
  await hf.close()
  process.exit(0)
}

process.on('message', (order) => void carryOut(order))
process.on('SIGTERM', stop)
process.on('disconnect', () => process.exit())
tell({ ready: { session: running?.sessionId?.() ?? null } })
