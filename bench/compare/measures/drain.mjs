// Drain: from starting the workers until the database has no jobs left. The costs are those of the same run.

export const drain = {
  name: 'drain',
  figures: {
    drain1: { title: 'drain, 1 process', unit: 'jobs/s', better: 'more' },
    cpuServer: { title: 'CPU of the server per 1,000 jobs', unit: 's', better: 'less' },
    cpuWorker: { title: 'CPU of the worker per 1,000 jobs', unit: 's', better: 'less' },
    disk: { title: 'disk per finished job', unit: 'bytes', better: 'less' },
  },
  async run(context) {
    const emptyBytes = await context.server.bytes()
    const { done, isComplete, rate, cpuServer, cpuWorker } = await drainOnce(context, 1)
    const bytes = isComplete && emptyBytes !== null ? (await context.server.bytes()) - emptyBytes : null
    return {
      drain1: rate,
      cpuServer: cpuServer === null ? null : (cpuServer / done) * 1000,
      cpuWorker: (cpuWorker / done) * 1000,
      disk: bytes === null ? null : Math.max(0, bytes / done),
    }
  },
}

export const drainByTwo = {
  name: 'drain-2',
  figures: { drain2: { title: 'drain, 2 processes', unit: 'jobs/s', better: 'more' } },
  run: async (context) => ({ drain2: (await drainOnce(context, 2)).rate }),
}

/** Submits jobs, starts worker processes, and waits until nothing is left, or for as long as the scale allows. */
export async function drainOnce({ contender, client, server, prepareWorkers, scale }, processes) {
  const jobs = Math.max(20, Math.round(scale.jobs * contender.part))
  for (let n = 0; n < jobs; n += scale.batch)
    await client.submitMany('noop', numbers(n, Math.min(scale.batch, jobs - n)))
  await server.quiesce()
  const workers = await prepareWorkers(processes, { task: 'noop' })
  const cpuBefore = server.cpuSeconds()
  const startedMs = performance.now()
  await workers.start()
  const untilMs = startedMs + scale.drainCapMs
  const left = await untilEmpty({ client, workers, jobs, untilMs })
  const seconds = (performance.now() - startedMs) / 1000
  const cpuAfter = server.cpuSeconds()
  const cpuWorker = await workers.cpuSeconds()
  await workers.kill()
  const done = jobs - left
  if (done === 0) throw new Error(`no job finished within ${scale.drainCapMs / 1000} s`)
  const cpuServer = cpuAfter === null || cpuBefore === null ? null : cpuAfter - cpuBefore
  return { done, isComplete: left === 0, rate: done / seconds, cpuServer, cpuWorker }
}

// the database is asked only once the handlers have seen all jobs, or time is up
async function untilEmpty({ client, workers, jobs, untilMs }) {
  while (workers.handled() < jobs && performance.now() < untilMs) await pause(2)
  for (;;) {
    const left = await client.left('noop')
    if (left === 0 || performance.now() >= untilMs) return left
    await pause(2)
  }
}

/** Consecutive numbers. */
export function numbers(from, count) {
  return Array.from({ length: count }, (_, index) => from + index)
}

/** Waits. */
export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
