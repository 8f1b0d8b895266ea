// Runs an attack in its own process, which gets only otherwise idle CPU time: it simulates other machines, and must not win by taking the CPU of this one.
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

const own = fileURLToPath(import.meta.url)

export function startAttacker(name, { url, keys }) {
  // its own session: Linux shares the CPU among sessions first, and only then among the processes in each
  const child = fork(own, [name, JSON.stringify({ url, keys })], { detached: true })
  const exited = once(child, 'exit')
  let asked = 0
  child.on('message', (message) => {
    if (typeof message === 'object') asked = message.asked
  })
  return {
    /** Resolves once the attack is under way, or its process ended. */
    underWay: Promise.race([once(child, 'message'), exited]),
    /** Ends the attack. Returns how many requests it has made. */
    async stop() {
      if (child.connected) child.send('stop')
      const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
      await exited
      clearTimeout(late)
      return asked
    },
  }
}

/** Lets all other processes run first, as far as this system supports it. */
async function lowerPriority() {
  setPriority(19)
  await writeFile('/proc/self/autogroup', '19').catch(() => {})
  try {
    execFileSync('chrt', ['--all-tasks', '--idle', '--pid', '0', String(process.pid)], { stdio: 'ignore' })
  } catch {} // without it, the priority alone counts
}

if (process.argv[1] === own) {
  await lowerPriority()
  const [, , name, target] = process.argv
  const ending = new AbortController()
  process.on('message', () => ending.abort())
  process.on('disconnect', () => process.exit(0))
  const { attack } = await import(`../${name}.mjs`)
  const { askedSoFar } = await import('./ask.mjs')
  let before = 0
  const begun = () => {
    before = askedSoFar()
    process.send('begun')
  }
  await attack({ ...JSON.parse(target), signal: ending.signal, begun })
  process.send({ asked: askedSoFar() - before }, () => process.exit(0))
}
