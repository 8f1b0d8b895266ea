// Kills a worker process with -9 while it runs jobs, repeatedly, at default settings, and prints how long it took until all of them had run
// again, next to the bound for that many jobs.
// Usage: npm run recovery [-- --jobs 20 --rounds 20 --json]
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { connect, defineJob } from 'holdfast'
import { readConfig } from '../dist/config/config.js'
import { ladder, laterOf } from '../dist/reaper/recovery-bound.js'

const hour = 3_600_000
const mostHandlers = 10_000
let started = 0
const slow = defineJob('slow', {
  timeoutMs: hour,
  run({ attempt }) {
    started += 1
    return attempt > 1 ? 'done' : new Promise((resolve) => setTimeout(resolve, hour))
  },
})

if (process.send) {
  const [url, jobs] = process.argv.slice(2)
  const hf = await connect({ url, jobs: [slow], logLevel: 'silent' })
  for (let left = Number(jobs); left > 0; left -= mostHandlers)
    await hf.work({ concurrency: Math.min(left, mostHandlers) })
  process.send('up')
  const timer = setInterval(() => started >= Number(jobs) && reportAll(), 5)
  function reportAll() {
    clearInterval(timer)
    process.send('all')
  }
} else {
  await measure()
}

async function measure() {
  const { values: flags } = parseArgs({
    options: {
      jobs: { type: 'string', default: '20' },
      rounds: { type: 'string', default: '20' },
      json: { type: 'boolean', default: false },
    },
  })
  const jobs = Number(flags.jobs)
  const boundMs = ladder(readConfig({}, {})).find(({ rung }) => rung === 'lock gone').boundMs + laterOf(jobs)
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-recovery-'))
  const hf = await connect({ embedded: dir, jobs: [slow], logLevel: 'error' })
  const times = []
  try {
    for (let round = 1; round <= Number(flags.rounds); round++) {
      times.push(await killOnce(hf, jobs))
      if (!flags.json) process.stderr.write(`round ${round}: ${times.at(-1)} ms\n`)
    }
  } finally {
    await hf.close()
    await rm(dir, { recursive: true, force: true })
  }
  const sorted = times.toSorted((a, b) => a - b)
  const within = times.filter((ms) => ms <= boundMs).length
  const figures = {
    jobs,
    rounds: times.length,
    boundMs,
    within,
    p50: sorted[Math.floor(times.length / 2)],
    max: sorted.at(-1),
  }
  console.log(
    flags.json
      ? JSON.stringify(figures)
      : `${within} of ${figures.rounds} within the bound of ${boundMs} ms for ${jobs} jobs; median ${figures.p50} ms, longest ${figures.max} ms`,
  )
  if (within < figures.rounds) process.exitCode = 1
}

/** Measures from the kill until the last of the jobs has ended on another worker. */
async function killOnce(hf, jobs) {
  const handles = await hf.submitMany(
    slow,
    Array.from({ length: jobs }, () => ({ input: null })),
  )
  const victim = await startWorker(hf.url, jobs)
  await once(victim, 'message')
  const heir = await startWorker(hf.url, jobs)
  const killedMs = performance.now()
  victim.kill('SIGKILL')
  await Promise.all(handles.map((handle) => handle.result({ timeout: 120_000 })))
  const tookMs = Math.round(performance.now() - killedMs)
  heir.kill('SIGKILL')
  await once(heir, 'exit')
  return tookMs
}

async function startWorker(url, jobs) {
  const child = fork(import.meta.filename, [url, jobs], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  await once(child, 'message')
  return child
}
