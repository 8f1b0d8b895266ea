// A worker process for tests that kill, stop or block one. It writes one JSON line per thing that happens.
import { createInterface } from 'node:readline'
import { connect, defineJob } from 'holdfast'

const tell = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)
let finish = () => {}
const finishing = new Promise((resolve) => {
  finish = resolve
})
createInterface({ input: process.stdin }).on('line', finish)

/** Blocks the event loop for so many milliseconds. */
const blocking = defineJob('blocking', {
  run: ({ job, input }) => {
    tell({ started: job.id })
    const until = performance.now() + input
    while (performance.now() < until);
    return 'blocked'
  },
})

/** Ends when it is told to, or when its signal fires. */
const patient = defineJob('patient', {
  retries: 0,
  run: async ({ job, attempt, signal }) => {
    tell({ started: job.id, attempt })
    signal.addEventListener('abort', () => tell({ aborted: job.id, reason: signal.reason.reason }))
    const aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await Promise.race([finishing, aborted])
    return 'finished'
  },
})

/** Takes no notice of its signal. */
const stubborn = defineJob('stubborn', {
  run: ({ job }) => {
    tell({ started: job.id })
    return new Promise(() => {})
  },
})

const hf = await connect({ ...JSON.parse(process.argv[2]), jobs: [blocking, patient, stubborn] })
const working = await hf.work()
tell({ session: working.sessionId() })
void working.ended.then((error) => error && tell({ failed: error.code, message: error.message }))
process.on('SIGTERM', async () => {
  tell({ stopping: true })
  await hf.close()
  process.exit(0)
})
