// Worker processes: each is forked, gets ready, and starts when told.
import { fork } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { fileURLToPath } from 'node:url'

const file = fileURLToPath(new URL('worker.mjs', import.meta.url))

/** Makes worker processes ready: connected where the contender can do so before it works. */
export async function summon(count, order) {
  const members = await Promise.all(Array.from({ length: count }, () => member(order)))
  return {
    members,
    start: () => Promise.all(members.map((one) => one.start())),
    handled: () => members.reduce((sum, one) => sum + one.handled(), 0),
    cpuSeconds: async () => (await Promise.all(members.map((one) => one.cpuSeconds()))).reduce((a, b) => a + b, 0),
    kill: () => Promise.all(members.map((one) => one.kill())),
  }
}

async function member(order) {
  const child = fork(file, [JSON.stringify(order)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const told = new EventEmitter()
  told.setMaxListeners(0)
  let handled = 0
  child.on('message', ({ type, value }) => {
    if (type === 'handled') handled = value
    told.emit(type, value)
  })
  const exited = once(child, 'exit')
  const answer = async (type) =>
    (
      await Promise.race([
        once(told, type),
        exited.then(([code]) => {
          throw new Error(`a worker process ended with code ${code}`)
        }),
      ])
    )[0]
  await answer('ready')
  return {
    told,
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
