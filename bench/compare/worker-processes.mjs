// The worker processes of a contender: each is forked, gets ready, and starts to work when told.
import { fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'

const file = fileURLToPath(new URL('worker.mjs', import.meta.url))

/** Prepares worker processes. They are connected already, if the contender can connect before it works. */
export async function prepareWorkers(count, order) {
  const all = await Promise.all(Array.from({ length: count }, () => prepareWorker(order)))
  return {
    all,
    start: () => Promise.all(all.map((one) => one.start())),
    handled: () => all.reduce((sum, one) => sum + one.handled(), 0),
    cpuSeconds: async () => (await Promise.all(all.map((one) => one.cpuSeconds()))).reduce((a, b) => a + b, 0),
    kill: () => Promise.all(all.map((one) => one.kill())),
  }
}

async function prepareWorker(order) {
  const child = fork(file, [JSON.stringify(order)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const events = new EventEmitter()
  events.setMaxListeners(0)
  let handled = 0
  child.on('message', ({ type, value }) => {
    if (type === 'handled') handled = value
    events.emit(type, value)
  })
  const exited = once(child, 'exit')
  const answer = async (type) =>
    (
      await Promise.race([
        once(events, type),
        exited.then(([code]) => {
          throw new Error(`a worker process ended with code ${code}`)
        }),
      ])
    )[0]
  await answer('ready')
  return {
    events,
    handled: () => handled,
    async start() {
      child.send('start')
      await answer('started')
    },
    async cpuSeconds() {
      child.send('cpu')
      return answer('cpu')
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
