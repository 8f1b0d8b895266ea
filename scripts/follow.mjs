import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { root } from './setup.mjs'

const quietMs = 500
const lookMs = 200

/** Runs a Node program in our place: it gets our terminal and our signals. Returns its exit code. */
export function follow(args, env = {}) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } })
  const stopPassing = passSignals(child)
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      stopPassing()
      resolve(code ?? 128 + (constants.signals[signal] ?? 0))
    })
  })
}

function passSignals(child) {
  const lastAt = {}
  const pass = (signal) => {
    // Ctrl-C reaches the whole foreground group by itself; a second SIGINT would mean "stop at once".
    if (signal === 'SIGINT' && process.stdin.isTTY) return
    // npm forwards signals as well, so one signal to the group arrives here twice.
    if (Date.now() - (lastAt[signal] ?? 0) < quietMs) return
    lastAt[signal] = Date.now()
    child.kill(signal)
  }
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, pass)
  const watch = watchShell(() => pass('SIGTERM'))
  return () => {
    clearInterval(watch)
    for (const signal of signals) process.off(signal, pass)
  }
}

// npm puts a shell between itself and us, and a SIGTERM to npm may kill that shell without reaching us. If npm was stopped,
// we stop as well.
function watchShell(onGone) {
  if (!process.env.npm_lifecycle_event) return undefined
  const shell = process.ppid
  const watch = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(watch)
    onGone()
  }, lookMs)
  return watch
}
