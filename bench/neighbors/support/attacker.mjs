// Runs an attack in a process of its own, with the lowest priority: it stands for other machines, and must not win by taking the CPU of this one.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

const own = fileURLToPath(import.meta.url)

export function startAttacker(name, { url, keys }) {
  const child = fork(own, [name, JSON.stringify({ url, keys })])
  const exited = once(child, 'exit')
  return {
    /** Resolves once the attack is under way, or its process ended. */
    underWay: Promise.race([once(child, 'message'), exited]),
    async stop() {
      if (child.connected) child.send('stop')
      const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
      await exited
      clearTimeout(late)
    },
  }
}

if (process.argv[1] === own) {
  setPriority(19)
  const [, , name, target] = process.argv
  const ending = new AbortController()
  process.on('message', () => ending.abort())
  process.on('disconnect', () => process.exit(0))
  const { attack } = await import(`../${name}.mjs`)
  await attack({ ...JSON.parse(target), signal: ending.signal, begun: () => process.send('begun') })
  process.exit(0)
}
